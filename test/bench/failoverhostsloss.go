package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/internal/harness"
)

// hostSide is a side that loses a whole host.
type hostSide interface {
	side
	loseHost(context.Context, lostPair) (float64, error)
}

// hostLost is a loss of its own under a peer, too. Its machine comes back once another server
// serves.
var hostLost = &loss{name: "host lost (kill -9 of all of it), back once another server serves", measure: longestPause, bar: 10,
	strike: func(s side, ctx context.Context, p lostPair) (float64, error) { return s.(hostSide).loseHost(ctx, p) }}

// hostLosses are what happens to a pair over two hosts. A peer's pair goes through the same
// with both servers on this machine, and is compared by that.
var hostLosses = []*loss{
	{name: "over two hosts: " + hostLost.name, measure: longestPause, bar: 10, strike: hostLost.strike, peer: hostLost},
	{name: "over two hosts: host frozen (agent, warden, server), resumed once another server serves", measure: longestPause, bar: 10, strike: side.freeze, peer: writerFrozen},
	{name: "over two hosts: writer killed", measure: longestPause, bar: 2, strike: side.kill, peer: writerKilled},
	{name: "over two hosts: failover in order", measure: longestPause, bar: 1, strike: side.inOrder, peer: inOrder},
}

// peerLosses are those of a peer that this run needs.
func (r *run) peerLosses() []*loss {
	var list []*loss
	if r.asked("failover") {
		list = append(list, losses...)
	}
	if r.machinesNamed() && !r.asked("failover") {
		list = append(list, writerKilled, writerFrozen, inOrder)
	}
	if r.machinesNamed() && harness.Apart() {
		list = append(list, hostLost)
	}
	return list
}

// hostsLab is an instance with its two servers on two hosts, and its client.
type hostsLab struct {
	*failoverLab
	bed *hostsBed
}

// hostsTally is a pair over two hosts, not yet struck.
func (l *lab) hostsTally(ctx context.Context, engine, name string) (*tally, *hostsLab, error) {
	f, err := l.failoverLab(ctx, engine)
	if err != nil {
		return nil, nil, err
	}
	h := &hostsLab{f, l.hosts}
	t := newTally(name, "", h)
	t.losses, t.where = hostLosses, "a service and two further hosts, as network namespaces of this machine"
	return t, h, nil
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

// loseHost is a loss of power: its processes end at once and its addresses are nowhere.
func (h *hostsLab) loseHost(ctx context.Context, p lostPair) (float64, error) {
	host, err := h.bed.host(p.writerZone)
	if err != nil {
		return 0, err
	}
	from := time.Now()
	err = h.bed.Try(func(t testing.TB) {
		host.Kill(t)
		host.EndWardens(t)
		if err := host.EndDatabases(ctx); err != nil {
			t.Fatal(err)
		}
		host.machine.Forget(t)
	})
	if err != nil {
		return 0, err
	}
	if err := more(ctx, h.pulse, pulseRows); err != nil {
		return 0, err
	}
	if err := h.bed.Try(func(t testing.TB) { host.Start(t) }); err != nil {
		return 0, err
	}
	return h.swapped(ctx, p, from)
}

// freeze stops the whole host, and has it go on once the other one serves.
func (h *hostsLab) freeze(ctx context.Context, p lostPair) (float64, error) {
	host, err := h.bed.host(p.writerZone)
	if err != nil {
		return 0, err
	}
	from := time.Now()
	var thaw func()
	if err := h.bed.Try(func(t testing.TB) { thaw = host.FreezeAll(t, h.i.id) }); err != nil {
		return 0, err
	}
	if err := more(ctx, h.pulse, pulseRows); err != nil {
		return 0, err
	}
	if err := h.bed.Try(func(testing.TB) { thaw() }); err != nil {
		return 0, err
	}
	return h.swapped(ctx, p, from)
}
