package main

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"
)

// hostSide is a side that loses a whole host.
type hostSide interface {
	side
	loseHost(context.Context, lostPair) (float64, error)
	loseStandbyHost(context.Context, lostPair) (float64, error)
}

// Losses of a host are losses of their own under a peer, too. The machine comes back once
// commits are acknowledged without it.
var (
	hostLost = &loss{name: "host lost (power: its cable pulled, kill -9 of all of it), back once another server serves", measure: longestPause, bar: 10,
		strike: func(s side, ctx context.Context, p lostPair) (float64, error) { return s.(hostSide).loseHost(ctx, p) }}
	standbyHostLost = &loss{name: "the standby's host lost (power: its cable pulled, kill -9 of all of it)", measure: longestWait, bar: 2,
		strike: func(s side, ctx context.Context, p lostPair) (float64, error) {
			return s.(hostSide).loseStandbyHost(ctx, p)
		}}
)

// hostLosses are what happens to a pair over two hosts. A peer's pair goes through the same
// with both servers on this machine, and is compared by that.
var hostLosses = []*loss{
	apartAs(hostLost, hostLost.name),
	apartAs(writerFrozen, "host frozen (agent, warden, server), resumed once another server serves"),
	apartAs(writerKilled, writerKilled.name),
	apartAs(inOrder, inOrder.name),
	apartAs(classLarger, classLarger.name),
	apartAs(classSmaller, classSmaller.name),
	apartAs(staticSet, staticSet.name),
	apartAs(standbyFrozen, "the standby's host frozen (agent, server)"),
	apartAs(standbyKilled, standbyKilled.name),
	apartAs(standbyHostLost, standbyHostLost.name),
}

// apartAs is a loss over two hosts beside which a peer's on one machine stands.
func apartAs(x *loss, name string) *loss {
	return &loss{name: "over two hosts: " + name, measure: x.measure, bar: x.bar, strike: x.strike, peer: x, noPeer: x.noPeer}
}

// peerLosses are those of a peer that this run needs.
func (r *run) peerLosses() []*loss {
	var list []*loss
	need := func(x *loss) {
		if x.noPeer == "" && !slices.Contains(list, x) {
			list = append(list, x)
		}
	}
	if r.asked("failover") {
		for _, x := range losses {
			need(x)
		}
	}
	if r.hostsToBeHad() {
		for _, x := range hostLosses {
			need(x.peer)
		}
	}
	return list
}

// hostsLab is an instance with its two servers on two hosts, and its client.
type hostsLab struct {
	*failoverLab
	bed *hostsBed
}

// hostsSide makes pairs of an engine over two hosts. One that does not come back takes the
// hosts along: what state they are in is not known.
func (a *apart) hostsSide(engine string) maker {
	return maker{
		make: func(ctx context.Context, n int) (side, error) {
			l, err := a.open(ctx)
			if err != nil {
				return nil, err
			}
			f, err := l.failoverLab(ctx, engine, n)
			if err != nil {
				return nil, errors.Join(err, a.close())
			}
			return &hostsLab{f, l.hosts}, nil
		},
		drop:  func(context.Context, side) error { return a.close() },
		leave: func(ctx context.Context, s side) error { return a.lab.remove(ctx, s.(*hostsLab).i.name) },
	}
}

// pair is which server writes and where, once the instance is whole.
func (h *hostsLab) pair(ctx context.Context) (p lostPair, err error) {
	err = h.waitPair(ctx, h.i, func(d types.DBInstance) string {
		p.writerZone, p.standbyZone = aws.ToString(d.AvailabilityZone), aws.ToString(d.SecondaryAvailabilityZone)
		return ""
	})
	if err != nil {
		return p, err
	}
	var errs [2]error
	p.writer, errs[0] = h.bed.member(p.writerZone, h.i.id)
	p.standby, errs[1] = h.bed.member(p.standbyZone, h.i.id)
	return p, errors.Join(errs[:]...)
}

// loseHost is a loss of the writer's host, which comes back once the other one serves.
func (h *hostsLab) loseHost(ctx context.Context, p lostPair) (float64, error) {
	host, err := h.bed.host(p.writerZone)
	if err != nil {
		return 0, err
	}
	from := time.Now()
	if err := h.bed.switchOff(ctx, host); err != nil {
		return 0, err
	}
	if err := more(ctx, h.pulse, pulseRows); err != nil {
		return 0, err
	}
	if err := h.bed.switchOn(host); err != nil {
		return 0, err
	}
	return h.swapped(ctx, p, from)
}

// loseStandbyHost is the same of the standby's, until commits do without it.
func (h *hostsLab) loseStandbyHost(ctx context.Context, p lostPair) (float64, error) {
	host, err := h.bed.host(p.standbyZone)
	if err != nil {
		return 0, err
	}
	return h.without(ctx, p, func() error { return h.bed.switchOff(ctx, host) }, func() error { return h.bed.switchOn(host) })
}

// switchOff is a loss of power. Its cable is pulled first: what a kernel says of processes
// that end, for it goes on running here, reaches nobody, as nothing does from a host without
// power. Then its processes end, and its addresses are nowhere.
func (b *hostsBed) switchOff(ctx context.Context, host *benchHost) error {
	return b.Try(func(t testing.TB) {
		host.machine.Plug(t, false)
		host.Kill(t)
		host.EndWardens(t)
		if err := host.EndDatabases(ctx); err != nil {
			t.Fatal(err)
		}
		host.machine.Forget(t)
	})
}

func (b *hostsBed) switchOn(host *benchHost) error {
	return b.Try(func(t testing.TB) {
		host.machine.Plug(t, true)
		host.Start(t)
	})
}

// freeze stops the whole host, and has it go on once the other one serves.
func (h *hostsLab) freeze(ctx context.Context, p lostPair) (float64, error) {
	host, err := h.bed.host(p.writerZone)
	if err != nil {
		return 0, err
	}
	from := time.Now()
	thaw, err := h.stop(host)
	if err != nil {
		return 0, err
	}
	if err := more(ctx, h.pulse, pulseRows); err != nil {
		return 0, err
	}
	if err := thaw(); err != nil {
		return 0, err
	}
	return h.swapped(ctx, p, from)
}

// loseStandby stops the whole host of the standby until commits do without it.
func (h *hostsLab) loseStandby(ctx context.Context, p lostPair) (float64, error) {
	host, err := h.bed.host(p.standbyZone)
	if err != nil {
		return 0, err
	}
	var thaw func() error
	return h.without(ctx, p, func() (err error) {
		thaw, err = h.stop(host)
		return err
	}, func() error { return thaw() })
}

// stop freezes a host, as far as it has to do with the instance.
func (h *hostsLab) stop(host *benchHost) (thaw func() error, err error) {
	var goOn func()
	err = h.bed.Try(func(t testing.TB) { goOn = host.FreezeAll(t, h.i.id) })
	return func() error { return h.bed.Try(func(testing.TB) { goOn() }) }, err
}
