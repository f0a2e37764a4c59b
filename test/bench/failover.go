package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/internal/harness"
)

func init() { parts = append(parts, part{[]string{"failover", hosts}, failover}) }

const (
	failoverRounds = 20
	// wholeWait bounds how long a server takes to be a standby again, pulseWait how long a
	// client may wait for the next row: a peer's lease may be 30 s and its loop 10 s.
	wholeWait = 2 * time.Minute
	pulseWait = 2 * time.Minute
	// pulseRows are written before a fault, and after it before anything is looked at.
	pulseRows = 20
)

// failover loses servers of an instance with two of them, under a client that writes every
// 10 ms, and measures what the client sees, beside the same losses under a peer; then what
// the second server costs, and the gateway. All of it is done on one host and over two.
func failover(ctx context.Context, r *run) (failure error) {
	l, err := r.service(ctx)
	if err != nil {
		return err
	}
	if l.engines[postgres] == "" {
		r.notInstalled("failover", "failover")
		return nil
	}
	apart, err := r.openHosts(ctx)
	if apart != nil {
		defer func() { failure = errors.Join(failure, apart.closeHosts()) }()
	}
	failure = errors.Join(err, r.failovers(ctx, l, apart))
	if r.asked("failover") {
		failure = errors.Join(failure, r.standbyPrice(ctx, l), r.gatewayPrice(ctx, l))
	}
	if apart != nil && ctx.Err() == nil {
		failure = errors.Join(failure, r.standbyPrice(ctx, apart), r.gatewayPrice(ctx, apart))
	}
	return failure
}

// side is one pair of servers in the comparison. pair waits until it is whole, and each
// loss returns, once it is whole again, the seconds that the client has seen.
type side interface {
	client() *harness.Pulse
	pair(context.Context) (lostPair, error)
	kill(context.Context, lostPair) (float64, error)
	freeze(context.Context, lostPair) (float64, error)
	inOrder(context.Context, lostPair) (float64, error)
	loseStandby(context.Context, lostPair) (float64, error)
}

const longestPause = "longest time without an acknowledgement"

// losses are what happens, in a random order in each round, with both servers on one host. A
// peer's server is frozen together with the Patroni that watches it, which is all of its host.
var (
	writerKilled = &loss{name: "writer killed", measure: longestPause, bar: 2, strike: side.kill}
	writerFrozen = &loss{name: "writer's server frozen, resumed once another server serves", measure: longestPause, bar: 10, strike: side.freeze}
	inOrder      = &loss{name: "failover in order", measure: longestPause, bar: 1, strike: side.inOrder}
	losses       = []*loss{writerKilled, writerFrozen, inOrder,
		{name: "standby frozen", measure: "longest wait of a commit", bar: 2, strike: side.loseStandby}}
)

// loss is one way to lose a server.
type loss struct {
	name, measure string
	bar           float64 // seconds; 0: none was set
	strike        func(side, context.Context, lostPair) (float64, error)
	peer          *loss // what a peer goes through in its place; nil: the same
}

// lostPair are the two servers before a loss, and their zones, if they have any.
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

func (f *failoverLab) client() *harness.Pulse { return f.pulse }

// failovers measures what a client sees of each loss, round by round in turn with the
// peers that can be had: of pairs on this machine, and of one over two hosts.
func (r *run) failovers(ctx context.Context, l, apart *lab) (failure error) {
	var all []*tally
	var own, other, far, farOther *tally // Kurabe's, and with the other engine; over two hosts
	if r.asked("failover") {
		f, err := l.failoverLab(ctx, postgres)
		if err != nil {
			return err
		}
		defer l.removeAtEnd(ctx, &failure, f.i.name)
		own = newTally("Kurabe", "", f)
		all = append(all, own)
		if l.engines[mariadb] != "" {
			f, err := l.failoverLab(ctx, mariadb)
			if err != nil {
				return err
			}
			defer l.removeAtEnd(ctx, &failure, f.i.name)
			other = newTally("MariaDB", "", f)
			all = append(all, other)
		}
	}
	var h *hostsLab
	if apart != nil {
		var err error
		if far, h, err = apart.hostsTally(ctx, postgres, "Kurabe"); err != nil {
			return err
		}
		all = append(all, far)
	}
	if len(all) == 0 {
		return nil // a peer alone is compared with nothing
	}
	p, peers := r.openPeers(ctx, l)
	defer func() { failure = errors.Join(failure, p.close()) }()
	if err := r.inTurn(ctx, append(all, peers...), own); err != nil {
		return err
	}
	if apart != nil {
		// A loss takes all of a host: the other engine's pair has the hosts to itself.
		failure = errors.Join(far.err, apart.remove(ctx, h.i.name))
		if failure == nil && apart.engines[mariadb] != "" {
			if farOther, h, failure = apart.hostsTally(ctx, mariadb, "MariaDB"); failure == nil {
				defer apart.removeAtEnd(ctx, &failure, h.i.name)
				failure = r.inTurn(ctx, []*tally{farOther}, farOther)
			}
		}
	}
	if own != nil {
		r.failoverRows(own, other, peers)
	}
	if far != nil {
		r.lossRows(far, farOther, peers)
	}
	if own == nil {
		r.peersMissing(peers)
	}
	return failure // a peer that was given up is in the rows, and fails nothing of ours
}

// inTurn takes the rounds of all in turn. It ends early with the one that must go on.
func (r *run) inTurn(ctx context.Context, all []*tally, must *tally) error {
	for round := range r.rounds() {
		for _, n := range r.rng.Perm(len(all)) {
			t := all[n]
			if t.err != nil {
				continue
			}
			if t.err = t.round(ctx, r, round); t.err != nil {
				r.out.say("  %s is given up: %v", t.name, t.err)
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if must != nil && must.err != nil {
				return must.err
			}
		}
	}
	return nil
}

// failoverLab makes the pair of an engine, and its client.
func (l *lab) failoverLab(ctx context.Context, engine string) (*failoverLab, error) {
	f := &failoverLab{lab: l, view: &harness.Service{Data: l.data}}
	o := order{name: "failover-" + engine, engine: engine, class: pairClass(l)}
	if engine == mariadb {
		o.retention = 1 // its binary log, which a standby lives on, is there from the beginning
	}
	var err error
	if f.i, err = l.createPair(ctx, o); err != nil {
		return nil, err
	}
	f.login = harness.Login{Engine: engine, Address: f.i.host, Port: f.i.port, User: masterUser, Password: masterPassword,
		Database: database, CAFile: filepath.Join(l.data, "ca.pem")}
	f.pulse, err = harness.NewPulse(ctx, f.login)
	return f, err
}

func (r *run) rounds() int {
	if r.Rounds > 0 {
		return r.Rounds
	}
	return pick(r, failoverRounds, 2)
}

// tally is what was seen of one side.
type tally struct {
	name, note, where string
	side
	losses  []*loss // what happens to it
	seen    map[*loss][]float64
	missing map[*loss]int        // rows that each loss has cost
	verdict harness.PulseVerdict // after the newest
	err     error                // it goes on no more
}

func newTally(name, note string, s side) *tally {
	return &tally{name: name, note: note, where: "both servers on this machine", side: s, losses: losses, seen: map[*loss][]float64{}, missing: map[*loss]int{}}
}

// round has each thing happen once, in a random order. The client writes meanwhile and not
// while it is another's turn.
func (t *tally) round(ctx context.Context, r *run, round int) error {
	t.client().Start()
	defer t.client().Stop()
	for _, n := range r.rng.Perm(len(t.losses)) {
		x := t.losses[n]
		seconds, v, err := t.lose(ctx, x)
		if err != nil {
			// What it has lost may still be told.
			if v, e := t.client().Judge(ctx); e == nil {
				t.missed(x, v)
			}
			return fmt.Errorf("%s, round %d: %w", x.name, round+1, err)
		}
		t.count(x, seconds, v)
		r.out.sample("failover", map[string]any{"side": t.name, "loss": x.name, "round": round, "seconds": seconds, "acked": v.Acked, "missing": len(v.Missing), "wrong": v.Wrong()})
		r.out.say("  round %d, %s, %s: %.2f s, %d of %d rows missing", round+1, t.name, x.name, seconds, len(v.Missing), v.Acked)
	}
	return nil
}

func (t *tally) count(x *loss, seconds float64, v harness.PulseVerdict) {
	t.seen[x] = append(t.seen[x], seconds)
	t.missed(x, v)
}

// missed holds the rows against a loss; those that were missing before it are not its.
func (t *tally) missed(x *loss, v harness.PulseVerdict) {
	t.missing[x] += len(v.Missing) - len(t.verdict.Missing)
	t.verdict = v
}

// lose has one thing happen to a whole pair, and reads the rows once it is whole again.
func (t *tally) lose(ctx context.Context, x *loss) (seconds float64, v harness.PulseVerdict, err error) {
	if err = more(ctx, t.client(), pulseRows); err != nil {
		return 0, v, err
	}
	p, err := t.pair(ctx)
	if err != nil {
		return 0, v, err
	}
	if seconds, err = x.strike(t.side, ctx, p); err != nil {
		return 0, v, err
	}
	v, err = t.client().Judge(ctx)
	return seconds, v, err
}

// more waits until so many more rows were acknowledged.
func more(ctx context.Context, pulse *harness.Pulse, rows int) error {
	from := pulse.Acked()
	for deadline := time.Now().Add(pulseWait); pulse.Acked() < from+rows; pauseFor(ctx, pollPause) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Now().After(deadline) {
			_, newest := pulse.Errors(deadline.Add(-pulseWait))
			return fmt.Errorf("%d rows in %s, the newest error: %v", pulse.Acked()-from, pulseWait, newest)
		}
	}
	return nil
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
	notWhole := (&harness.Service{Data: l.data}).NotWhole
	if l.hosts != nil {
		notWhole = l.hosts.notWhole
	}
	for deadline := time.Now().Add(wholeWait); ; pauseFor(ctx, pollPause) {
		out, err := l.api.DescribeDBInstances(ctx, &rds.DescribeDBInstancesInput{DBInstanceIdentifier: aws.String(i.name)})
		if err != nil {
			return err
		}
		d := out.DBInstances[0]
		lacks := notWhole(d)
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
