package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/internal/harness"
	"kurabe/lab/stat"
)

func init() { parts = append(parts, part{[]string{"failover"}, failover}) }

const (
	failoverRounds = 20
	// wholeWait bounds how long a server takes to be a standby again, pulseWait how long a
	// client may wait for the next row.
	wholeWait = 2 * time.Minute
	pulseWait = time.Minute
	// pulseRows are written before a fault, and after it before anything is looked at.
	pulseRows = 20
)

// failover loses servers of an instance with two of them, under a client that writes every
// 10 ms, and measures what the client sees; then what the second server costs.
func failover(ctx context.Context, r *run) error {
	l, err := r.service(ctx)
	if err != nil {
		return err
	}
	if l.engines[postgres] == "" {
		r.notInstalled("failover", "failover")
		return nil
	}
	return errors.Join(r.failovers(ctx, l), r.standbyPrice(ctx, l))
}

// losses are what happens, in a random order in each round.
var losses = []*loss{
	{name: "writer killed", measure: "longest time without an acknowledgement", bar: 3, strike: (*failoverLab).kill},
	{name: "writer frozen, resumed once another server serves", measure: "longest time without an acknowledgement", strike: (*failoverLab).freeze},
	{name: "failover in order", measure: "longest time without an acknowledgement", strike: (*failoverLab).inOrder},
	{name: "standby frozen", measure: "longest wait of a commit", bar: 2, strike: (*failoverLab).loseStandby},
}

// loss is one way to lose a server. strike returns what the client has seen, in seconds.
type loss struct {
	name, measure string
	bar           float64 // seconds; 0: none was set
	strike        func(*failoverLab, context.Context, lostPair) (float64, error)
}

// lostPair are the two servers before a loss, and their zones.
type lostPair struct {
	writer, standby         harness.Member
	writerZone, standbyZone string
}

// failoverLab is an instance with two servers, and its client.
type failoverLab struct {
	*lab
	i     *instance
	login harness.Login
	view  *harness.Service // sees folders and processes
	pulse *harness.Pulse
}

// failovers measures what a client sees of each loss.
func (r *run) failovers(ctx context.Context, l *lab) (failure error) {
	f := &failoverLab{lab: l, view: &harness.Service{Data: l.data}}
	var err error
	if f.i, err = l.createPair(ctx, order{name: "failover", engine: postgres, class: pairClass(l)}); err != nil {
		return err
	}
	defer func() {
		if ctx.Err() == nil {
			failure = errors.Join(failure, l.remove(ctx, f.i.name))
		}
	}()
	f.login = harness.Login{Engine: postgres, Address: f.i.host, Port: f.i.port, User: masterUser, Password: masterPassword,
		Database: database, CAFile: filepath.Join(l.data, "ca.pem")}
	if f.pulse, err = harness.NewPulse(ctx, f.login); err != nil {
		return err
	}
	f.pulse.Start()
	defer f.pulse.Stop()
	seen := make([][]float64, len(losses))
	for round := range pick(r, failoverRounds, 2) {
		for _, n := range r.rng.Perm(len(losses)) {
			seconds, v, err := f.lose(ctx, losses[n])
			if err != nil {
				return fmt.Errorf("%s, round %d: %w", losses[n].name, round+1, err)
			}
			seen[n] = append(seen[n], seconds)
			r.out.sample("failover", map[string]any{"loss": losses[n].name, "round": round, "seconds": seconds, "acked": v.Acked, "missing": len(v.Missing), "wrong": v.Wrong()})
		}
	}
	f.pulse.Stop()
	v, err := f.pulse.Judge(ctx)
	if err != nil {
		return err
	}
	r.failoverRows(seen, v)
	return nil
}

// lose has one thing happen to a whole instance, and reads the rows once it is whole again.
func (f *failoverLab) lose(ctx context.Context, x *loss) (seconds float64, v harness.PulseVerdict, err error) {
	if err = f.more(ctx, pulseRows); err != nil {
		return 0, v, err
	}
	p, err := f.pair(ctx)
	if err != nil {
		return 0, v, err
	}
	if seconds, err = x.strike(f, ctx, p); err != nil {
		return 0, v, err
	}
	v, err = f.pulse.Judge(ctx)
	return seconds, v, err
}

func (r *run) failoverRows(seen [][]float64, v harness.PulseVerdict) {
	for n, x := range losses {
		line := row{Bench: "failover", What: x.name + ": " + x.measure, Note: fmt.Sprintf("%d rounds, a client that writes every 10 ms; both servers on this machine", len(seen[n]))}
		line.Value = medianAndWorst(seen[n])
		if x.bar > 0 {
			line.Bar, line.Verdict = fmt.Sprintf("≤ %.0f s, each time", x.bar), verdict(slices.Max(seen[n]) <= x.bar)
		}
		r.out.row(line)
	}
	r.out.row(row{Bench: "failover", What: "acknowledged rows that are missing after all of it", Value: fmt.Sprintf("%d of %d", len(v.Missing), v.Acked),
		Bar: "0", Verdict: verdict(v.Wrong() == ""), Note: v.Wrong()})
}

func medianAndWorst(seconds []float64) string {
	return fmt.Sprintf("median %.2f s, worst %.2f s", stat.Median(seconds), slices.Max(seconds))
}

// createPair makes an instance with two servers.
func (l *lab) createPair(ctx context.Context, o order) (*instance, error) {
	in := o.input()
	in.MultiAZ = aws.Bool(true)
	if _, err := l.api.CreateDBInstance(ctx, in); err != nil {
		return nil, err
	}
	i, err := l.waitStatus(ctx, o.name, "available")
	if err != nil {
		return nil, err
	}
	return i, l.waitPair(ctx, i, func(types.DBInstance) string { return "" })
}

// waitPair waits until an instance is whole and nothing else is missing.
func (l *lab) waitPair(ctx context.Context, i *instance, missing func(types.DBInstance) string) error {
	view := &harness.Service{Data: l.data}
	for deadline := time.Now().Add(wholeWait); ; pauseFor(ctx, pollPause) {
		out, err := l.api.DescribeDBInstances(ctx, &rds.DescribeDBInstancesInput{DBInstanceIdentifier: aws.String(i.name)})
		if err != nil {
			return err
		}
		d := out.DBInstances[0]
		lacks := view.NotWhole(d)
		if lacks == "" {
			lacks = missing(d)
		}
		if lacks == "" || time.Now().After(deadline) || ctx.Err() != nil {
			if lacks != "" {
				err = errors.Join(ctx.Err(), fmt.Errorf("%s is not whole: %s", i.name, lacks))
			}
			return err
		}
	}
}
