package failover

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
	"kurabe/test/bench/bed"
	"kurabe/test/bench/labproof"
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
func (r *comparison) gatewayPrice(ctx context.Context, l *site) (failure error) {
	o := bed.Order{Name: "gateway", Engine: bed.Postgres, Class: pairClass(l)}
	var err error
	if o.Group, err = l.GroupWithoutTLS(ctx, bed.Postgres); err != nil {
		return err
	}
	i, err := l.createPair(ctx, o)
	if err != nil {
		return err
	}
	defer l.RemoveAtEnd(ctx, &failure, i.Name)
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
func (l *site) behindGateway(ctx context.Context, i *bed.Instance) (direct bed.Target, how string, err error) {
	var before string
	err = l.waitPair(ctx, i, func(d types.DBInstance) string {
		before = aws.ToString(d.AvailabilityZone)
		return ""
	})
	if err != nil {
		return direct, how, err
	}
	if _, err := l.Api.RebootDBInstance(ctx, &rds.RebootDBInstanceInput{DBInstanceIdentifier: aws.String(i.Name), ForceFailover: aws.Bool(true)}); err != nil {
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
	session, err := harness.Open(ctx, harness.Login{Engine: i.Engine, Address: i.Host, Port: i.Port, User: bed.MasterUser, Password: bed.MasterPassword,
		Database: bed.Database, CAFile: filepath.Join(l.Data, "ca.pem")})
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
	if accepted[0] == i.Host {
		how = "by socket lookup"
	}
	direct = i.Target
	if direct.Host = at[0]; direct.Host == i.Host {
		return direct, how, fmt.Errorf("the server of %s listens at the endpoint itself, %s", i.Name, i.Host)
	}
	return direct, how, nil
}

// gatewayLatency compares answers at a rate that leaves all of them idle most of the time.
func (r *comparison) gatewayLatency(ctx context.Context, l *site, i *bed.Instance, direct bed.Target, how string) error {
	var arms []*labproof.AgreeArm
	for _, a := range []*labproof.AgreeArm{{Name: "endpoint", At: i.Target}, {Name: "direct", At: direct}} {
		var err error
		a.Kit, a.Micros = gatewayKit, make([][]float64, len(labproof.AgreeQuantiles))
		a.Generator, err = load.New(study.Workload{Name: gatewayKit, Generator: study.GeneratorOwn, Kit: gatewayKit, Mode: study.ModeOpen,
			Rate: labproof.AgreeRate, Clients: bed.SpeedClients, Scale: bed.Pick(r.Run, 10, 1), Protocol: "prepared"})
		if err != nil {
			return err
		}
		arms = append(arms, a)
	}
	if err := arms[1].Generator.Prepare(ctx, labproof.LabServer(direct)); err != nil {
		return err
	}
	if err := labproof.AgreeBlocks(ctx, r.Run, l.Lab, i, arms); err != nil {
		return err
	}
	for n, quantile := range labproof.AgreeQuantiles {
		through, alone := arms[0].Micros[n], arms[1].Micros[n]
		var added []float64
		for k := range through {
			added = append(added, through[k]-alone[k])
		}
		interval, estimate := stat.SignedRankInterval(added, bed.SpeedLevel), stat.HodgesLehmann(added)
		line := bed.Row{Bench: "failover", What: fmt.Sprintf("the endpoint adds after a failover%s, %s, %s at %d a second, p%g", l.overHosts(), how, gatewayKit, labproof.AgreeRate, quantile),
			Value: fmt.Sprintf("%.0f µs [%.0f, %.0f]", estimate, interval.Low, interval.High),
			Note:  fmt.Sprintf("median %.0f against %.0f µs; %d blocks of %s, %d clients, without TLS", stat.Median(through), stat.Median(alone), len(added), labproof.AgreeTime(r.Run), bed.SpeedClients)}
		if n == 0 {
			line.Bar, line.Verdict = fmt.Sprintf("≤ %d µs", gatewayMicros), bed.AtMost(interval, gatewayMicros)
		}
		r.Out.Row(line)
	}
	return nil
}

// gatewayThroughput compares rates with all processors busy.
func (r *comparison) gatewayThroughput(ctx context.Context, l *site, i *bed.Instance, direct bed.Target, how string) error {
	if err := direct.PgbenchInit(ctx, false, bed.Pick(r.Run, 10, 1)); err != nil {
		return err
	}
	arms := []bed.Arm{{Name: "endpoint", Target: i.Target}, {Name: "direct", Target: direct}}
	rates := make([][]float64, len(arms))
	for block := range r.Blocks {
		x := bed.Trial{Clients: gatewayClients, Seconds: r.Seconds, ReadOnly: true, Seed: r.Rng.Uint64()}
		for position, n := range r.Rng.Perm(len(arms)) {
			if err := bed.Settle(ctx, direct, l.writerHome(i)); err != nil {
				return fmt.Errorf("checkpoint: %w", err)
			}
			got, err := arms[n].Target.Pgbench(ctx, x)
			if err != nil {
				return err
			}
			rates[n] = append(rates[n], got.PerSecond)
			r.Out.Sample("gateway", map[string]any{"block": block, "position": position, "arm": arms[n].Name, "result": got})
		}
	}
	ratio := stat.PairedRatio(rates[0], rates[1], bed.SpeedLevel)
	r.Out.Row(bed.Row{Bench: "failover", What: fmt.Sprintf("pgbench select-only, %d clients, after a failover%s: endpoint, %s / direct", gatewayClients, l.overHosts(), how), Value: bed.FormatRatio(ratio),
		Bar: fmt.Sprintf("≥ %.2f", gatewayRate), Verdict: bed.AtLeast(ratio.Interval, gatewayRate),
		Note: fmt.Sprintf("median %.0f against %.0f transactions/s; %d blocks of %d s, without TLS; clients and server share %d processors",
			stat.Median(rates[0]), stat.Median(rates[1]), r.Blocks, r.Seconds, runtime.NumCPU())})
	return nil
}
