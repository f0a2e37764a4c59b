package main

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/internal/harness"
	"kurabe/lab/load"
	"kurabe/lab/stat"
	"kurabe/lab/study"
)

const (
	// gatewayMicros is what the endpoint may add to the median answer, gatewayRate the least
	// part of the direct rate that may be left.
	gatewayMicros  = 20
	gatewayRate    = 0.9
	gatewayClients = 32
	gatewayKit     = "select-only"
)

// gatewayPrice is what the endpoint costs after a failover, when its server listens elsewhere:
// the same server, at the endpoint and at its own address.
func (r *run) gatewayPrice(ctx context.Context, l *lab) (failure error) {
	o := order{name: "gateway", engine: postgres, class: pairClass(l)}
	var err error
	if o.group, err = l.groupWithoutTLS(ctx, postgres); err != nil {
		return err
	}
	i, err := l.createPair(ctx, o)
	if err != nil {
		return err
	}
	defer l.removeAtEnd(ctx, &failure, i.name)
	direct, how, err := l.behindGateway(ctx, i)
	if err != nil {
		return err
	}
	if err := r.gatewayLatency(ctx, l, i, direct, how); err != nil {
		return err
	}
	return r.gatewayThroughput(ctx, l, i, direct, how)
}

// behindGateway has the endpoint of an instance pass to the host: where the server itself
// listens then, and how its clients get there.
func (l *lab) behindGateway(ctx context.Context, i *instance) (direct target, how string, err error) {
	var before string
	err = l.waitPair(ctx, i, func(d types.DBInstance) string {
		before = aws.ToString(d.AvailabilityZone)
		return ""
	})
	if err != nil {
		return direct, how, err
	}
	if _, err := l.api.RebootDBInstance(ctx, &rds.RebootDBInstanceInput{DBInstanceIdentifier: aws.String(i.name), ForceFailover: aws.Bool(true)}); err != nil {
		return direct, how, err
	}
	err = l.waitPair(ctx, i, func(d types.DBInstance) string {
		if now := aws.ToString(d.AvailabilityZone); now == before {
			return "the writer is in " + now
		}
		return ""
	})
	if err != nil {
		return direct, how, err
	}
	session, err := harness.Open(ctx, harness.Login{Engine: i.engine, Address: i.host, Port: i.port, User: masterUser, Password: masterPassword,
		Database: database, CAFile: filepath.Join(l.data, "ca.pem")})
	if err != nil {
		return direct, how, err
	}
	defer session.Close()
	at, err := session.Rows(ctx, "SELECT current_setting('listen_addresses')")
	if err != nil {
		return direct, how, err
	}
	// What the server takes for its own end of the session tells who accepted it.
	accepted, err := session.Rows(ctx, "SELECT host(inet_server_addr())")
	if err != nil {
		return direct, how, err
	}
	how = "through the gateway"
	if accepted[0] == i.host {
		how = "by socket lookup"
	}
	direct = i.target
	if direct.host = at[0]; direct.host == i.host {
		return direct, how, fmt.Errorf("the server of %s listens at the endpoint itself, %s", i.name, i.host)
	}
	return direct, how, nil
}

// gatewayLatency compares answers at a rate that leaves all of them idle most of the time.
func (r *run) gatewayLatency(ctx context.Context, l *lab, i *instance, direct target, how string) error {
	var arms []*agreeArm
	for _, a := range []*agreeArm{{name: "endpoint", at: i.target}, {name: "direct", at: direct}} {
		var err error
		a.kit, a.micros = gatewayKit, make([][]float64, len(agreeQuantiles))
		a.generator, err = load.New(study.Workload{Name: gatewayKit, Generator: study.GeneratorOwn, Kit: gatewayKit, Mode: study.ModeOpen,
			Rate: agreeRate, Clients: speedClients, Scale: pick(r, 10, 1), Protocol: "prepared"})
		if err != nil {
			return err
		}
		arms = append(arms, a)
	}
	if err := arms[1].generator.Prepare(ctx, direct.labServer()); err != nil {
		return err
	}
	if err := r.agreeBlocks(ctx, l, i, arms); err != nil {
		return err
	}
	for n, quantile := range agreeQuantiles {
		through, alone := arms[0].micros[n], arms[1].micros[n]
		var added []float64
		for k := range through {
			added = append(added, through[k]-alone[k])
		}
		interval, estimate := stat.SignedRankInterval(added, speedLevel), stat.HodgesLehmann(added)
		line := row{Bench: "failover", What: fmt.Sprintf("the endpoint adds after a failover%s, %s, %s at %d a second, p%g", l.overHosts(), how, gatewayKit, agreeRate, quantile),
			Value: fmt.Sprintf("%.0f µs [%.0f, %.0f]", estimate, interval.Low, interval.High),
			Note:  fmt.Sprintf("median %.0f against %.0f µs; %d blocks of %s, %d clients, without TLS", stat.Median(through), stat.Median(alone), len(added), r.agreeTime(), speedClients)}
		if n == 0 {
			line.Bar, line.Verdict = fmt.Sprintf("≤ %d µs", gatewayMicros), atMost(interval, gatewayMicros)
		}
		r.out.row(line)
	}
	return nil
}

// gatewayThroughput compares rates with all processors busy.
func (r *run) gatewayThroughput(ctx context.Context, l *lab, i *instance, direct target, how string) error {
	if err := direct.pgbenchInit(ctx, false, pick(r, 10, 1)); err != nil {
		return err
	}
	arms := []arm{{"endpoint", i.target}, {"direct", direct}}
	rates := make([][]float64, len(arms))
	for block := range r.Blocks {
		x := trial{clients: gatewayClients, seconds: r.Seconds, readOnly: true, seed: r.rng.Uint64()}
		for position, n := range r.rng.Perm(len(arms)) {
			if err := settle(ctx, direct, l.home(i)); err != nil {
				return fmt.Errorf("checkpoint: %w", err)
			}
			got, err := arms[n].target.pgbench(ctx, x)
			if err != nil {
				return err
			}
			rates[n] = append(rates[n], got.PerSecond)
			r.out.sample("gateway", map[string]any{"block": block, "position": position, "arm": arms[n].name, "result": got})
		}
	}
	ratio := stat.PairedRatio(rates[0], rates[1], speedLevel)
	r.out.row(row{Bench: "failover", What: fmt.Sprintf("pgbench select-only, %d clients, after a failover%s: endpoint, %s / direct", gatewayClients, l.overHosts(), how), Value: formatRatio(ratio),
		Bar: fmt.Sprintf("≥ %.2f", gatewayRate), Verdict: atLeast(ratio.Interval, gatewayRate),
		Note: fmt.Sprintf("median %.0f against %.0f transactions/s; %d blocks of %d s, without TLS; clients and server share %d processors",
			stat.Median(rates[0]), stat.Median(rates[1]), r.Blocks, r.Seconds, runtime.NumCPU())})
	return nil
}
