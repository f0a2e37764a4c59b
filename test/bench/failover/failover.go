package failover

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
	"kurabe/test/bench/bed"
)

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
func failover(ctx context.Context, r *comparison) (failure error) {
	l, err := r.site(ctx)
	if err != nil {
		return err
	}
	if l.Engines[bed.Postgres] == "" {
		r.NotInstalled("failover", "failover")
		return nil
	}
	if r.began.IsZero() {
		r.began = time.Now()
	}
	a := &apart{r: r}
	defer func() { failure = errors.Join(failure, a.close()) }()
	r.sayNoHosts()
	failure = r.failovers(ctx, l, a)
	r.failoverFigures()
	if r.Asked("failover") {
		here := func(context.Context) (*site, error) { return l, nil }
		failure = errors.Join(failure, r.once(ctx, partPrice, here, r.standbyPrice), r.once(ctx, partGateway, here, r.gatewayPrice))
	}
	if r.hostsToBeHad() {
		failure = errors.Join(failure, r.once(ctx, partPrice+overTwoHosts, a.open, r.standbyPrice), r.once(ctx, partGateway+overTwoHosts, a.open, r.gatewayPrice))
	}
	return failure
}

// writer is the client of a side.
type writer interface {
	Start()
	Stop()
	Acked() int
	Errors(from time.Time) (int, error)
	Judge(context.Context) (harness.PulseVerdict, error)
}

// side is one pair of servers in the comparison. pair waits until it is whole, and each
// loss returns, once it is whole again, the seconds that the client has seen.
type side interface {
	client() writer
	pair(context.Context) (lostPair, error)
	kill(context.Context, lostPair) (float64, error)
	freeze(context.Context, lostPair) (float64, error)
	inOrder(context.Context, lostPair) (float64, error)
	loseStandby(context.Context, lostPair) (float64, error)
	killStandby(context.Context, lostPair) (float64, error)
	setStatic(context.Context, lostPair) (float64, error)
}

// classSide is a side that knows classes.
type classSide interface {
	changeClass(ctx context.Context, p lostPair, larger bool) (float64, error)
}

const (
	longestPause = "longest time without an acknowledgement"
	longestWait  = "longest wait of a commit"
	noClasses    = "Patroni knows no classes; what one means to PostgreSQL are static parameters, which have rows of their own"
)

// losses are what happens, in a random order in each round, with both servers on one host. A
// peer's server is frozen together with the Patroni that watches it, which is all of its host.
var (
	writerKilled  = &loss{name: "writer killed", measure: longestPause, bar: 2, strike: side.kill}
	writerFrozen  = &loss{name: "writer's server frozen, resumed once another server serves", measure: longestPause, bar: 10, strike: side.freeze}
	inOrder       = &loss{name: "failover in order", measure: longestPause, bar: 1, strike: side.inOrder}
	classLarger   = &loss{name: "class change to a larger one", measure: longestPause, bar: 1, strike: changeClass(true), noPeer: noClasses}
	classSmaller  = &loss{name: "class change to a smaller one", measure: longestPause, bar: 1, strike: changeClass(false), noPeer: noClasses}
	staticSet     = &loss{name: "static parameter changed, and in force on both servers", measure: longestPause, bar: 1, strike: side.setStatic}
	standbyFrozen = &loss{name: "standby frozen", measure: longestWait, bar: 2, strike: side.loseStandby}
	standbyKilled = &loss{name: "standby killed", measure: longestWait, bar: 2, strike: side.killStandby}

	losses = []*loss{writerKilled, writerFrozen, inOrder, classLarger, classSmaller, staticSet, standbyFrozen, standbyKilled}
)

func changeClass(larger bool) func(side, context.Context, lostPair) (float64, error) {
	return func(s side, ctx context.Context, p lostPair) (float64, error) {
		return s.(classSide).changeClass(ctx, p, larger)
	}
}

// loss is one way to lose a server.
type loss struct {
	name, measure string
	bar           float64 // seconds; 0: none was set
	strike        func(side, context.Context, lostPair) (float64, error)
	peer          *loss  // what a peer goes through in its place; nil: the same
	noPeer        string // why no peer can go through the like
}

// lostPair are the two servers before a loss, and their zones, if they have any.
type lostPair struct {
	writer, standby         harness.Member
	writerZone, standbyZone string
}

// failoverLab is an instance with two servers, and its client.
type failoverLab struct {
	*site
	i     *bed.Instance
	login harness.Login
	view  *harness.Service // sees folders and processes
	pulse *harness.Pulse
	// class is its own, smaller one that it is changed to and back from, group its parameters.
	class, smaller, group string
	sets                  int // of the static parameter
}

func (f *failoverLab) client() writer { return f.pulse }

// failovers measures what a client sees of each loss, round by round in turn with the
// peers that can be had: of pairs on this machine, and of one over two hosts.
func (r *comparison) failovers(ctx context.Context, l *site, a *apart) (failure error) {
	_, other := l.Engines[bed.MariaDB]
	together, alone := r.ours(l, a, other)
	if len(together)+len(alone) == 0 {
		return nil // a peer alone is compared with nothing
	}
	p := r.openPeers(ctx, l)
	defer func() { failure = errors.Join(failure, p.close()) }()
	for _, all := range [][]*contender{append(together, p.contenders()...), alone} {
		failure = errors.Join(failure, r.inTurn(ctx, all))
		for _, c := range all {
			failure = errors.Join(failure, c.end(ctx))
			if c.Role != rolePeer { // a peer that does not come back is in the rows, and fails nothing of ours
				failure = errors.Join(failure, c.wrong())
			}
		}
	}
	return failure
}

// ours are the pairs of Kurabe. A loss takes all of a host, so the other engine's pair over
// two hosts has them to itself, later.
func (r *comparison) ours(l *site, a *apart, other bool) (together, alone []*contender) {
	const here = "both servers on this machine"
	if r.Asked("failover") {
		together = append(together, r.contender(about{Name: "Kurabe", Role: roleOwn, Where: here}, losses, l.instanceSide(bed.Postgres)))
		if other {
			together = append(together, r.contender(about{Name: "MariaDB", Role: roleOther, Where: here}, losses, l.instanceSide(bed.MariaDB)))
		}
	}
	if r.hostsToBeHad() {
		const where = "a service and two further hosts, as network namespaces of this machine"
		together = append(together, r.contender(about{Name: "Kurabe" + overTwoHosts, Role: roleFar, Where: where}, hostLosses, a.hostsSide(bed.Postgres)))
		if other {
			alone = append(alone, r.contender(about{Name: "MariaDB" + overTwoHosts, Role: roleFarOther, Where: where}, hostLosses, a.hostsSide(bed.MariaDB)))
		}
	}
	return together, alone
}

// maker is how there is a pair of a side, and how there is none any more.
type maker struct {
	make        func(ctx context.Context, n int) (side, error)
	drop, leave func(context.Context, side) error
}

func (r *comparison) contender(a about, losses []*loss, m maker) *contender {
	return &contender{tally: r.book.side(a), losses: losses, make: m.make, drop: m.drop, leave: m.leave}
}

// instanceSide makes pairs of an engine on this machine.
func (l *site) instanceSide(engine string) maker {
	remove := func(ctx context.Context, s side) error { return l.Remove(ctx, s.(*failoverLab).i.Name) }
	return maker{
		make: func(ctx context.Context, n int) (side, error) {
			f, err := l.failoverLab(ctx, engine, n)
			if err != nil {
				return nil, errors.Join(err, l.removeStump(ctx, pairName(engine, n)))
			}
			return f, nil
		},
		drop: func(ctx context.Context, s side) error {
			f := s.(*failoverLab)
			for _, m := range f.view.Members(f.i.Id) {
				_ = m.Thaw() // a loss that failed may have left it frozen, and a frozen server does not end
			}
			return remove(ctx, s)
		},
		leave: remove,
	}
}

// pairName is that of the n-th pair of an engine.
func pairName(engine string, n int) string { return fmt.Sprintf("failover-%s-%d", engine, n) }

// removeStump removes an instance that may have been begun.
func (l *site) removeStump(ctx context.Context, name string) error {
	if ctx.Err() != nil {
		return nil
	}
	return l.Remove(ctx, name)
}

// failoverLab makes the pair of an engine, and its client.
func (l *site) failoverLab(ctx context.Context, engine string, n int) (*failoverLab, error) {
	f := &failoverLab{site: l, view: &harness.Service{Data: l.Data}, class: pairClass(l), group: pairName(engine, n)}
	f.smaller = smallerClass(f.class)
	o := bed.Order{Name: pairName(engine, n), Engine: engine, Class: f.class, Group: f.group}
	if engine == bed.MariaDB {
		o.Retention = 1 // its binary log, which a standby lives on, is there from the beginning
	}
	var err error
	if err = l.createGroup(ctx, f.group, l.Families[engine]); err != nil {
		return nil, err
	}
	if f.i, err = l.createPair(ctx, o); err != nil {
		return nil, err
	}
	f.login = harness.Login{Engine: engine, Address: f.i.Host, Port: f.i.Port, User: bed.MasterUser, Password: bed.MasterPassword,
		Database: bed.Database, CAFile: filepath.Join(l.Data, "ca.pem")}
	f.pulse, err = harness.NewPulse(ctx, f.login)
	return f, err
}

func (r *comparison) rounds() int {
	if r.Rounds > 0 {
		return r.Rounds
	}
	return bed.Pick(r.Run, failoverRounds, 2)
}

// createPair makes an instance with two servers.
func (l *site) createPair(ctx context.Context, o bed.Order) (*bed.Instance, error) {
	in := o.Input()
	in.MultiAZ = aws.Bool(true)
	if _, err := l.Api.CreateDBInstance(ctx, in); err != nil {
		return nil, err
	}
	i, err := l.WaitStatus(ctx, o.Name, "available")
	if err != nil {
		return nil, err
	}
	return i, l.waitPair(ctx, i, func(types.DBInstance) string { return "" })
}

// waitPair waits until an instance is whole and nothing else is missing.
func (l *site) waitPair(ctx context.Context, i *bed.Instance, missing func(types.DBInstance) string) error {
	notWhole := (&harness.Service{Data: l.Data}).NotWhole
	if l.hosts != nil {
		notWhole = l.hosts.notWhole
	}
	for deadline := time.Now().Add(wholeWait); ; _ = bed.Wait(ctx, bed.PollPause) {
		out, err := l.Api.DescribeDBInstances(ctx, &rds.DescribeDBInstancesInput{DBInstanceIdentifier: aws.String(i.Name)})
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
				err = errors.Join(ctx.Err(), fmt.Errorf("%s is not whole: %s", i.Name, lacks))
			}
			return err
		}
	}
}
