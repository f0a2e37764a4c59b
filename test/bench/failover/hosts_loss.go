package failover

import (
	"context"
	"errors"
	"slices"

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
	// A peer's hosts are one machine, whose kernel tells the others at once that a server has
	// ended. So it is with a host that is killed while its cable is in.
	standbyHostKilled = &loss{name: "over two hosts: the standby's host killed (kill -9 of all of it, its cable in)", measure: longestWait, bar: 2, peer: standbyHostLost,
		strike: func(s side, ctx context.Context, p lostPair) (float64, error) {
			return s.(*hostsLab).killStandbyHost(ctx, p)
		}}
)

const onlyPower = "its hosts are one machine, whose kernel tells the others at once: see the standby's host killed"

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
	standbyHostKilled,
	withoutPeer(apartAs(standbyHostLost, standbyHostLost.name), onlyPower),
}

// withoutPeer is a loss beside which no peer stands, and why.
func withoutPeer(x *loss, why string) *loss {
	x.noPeer = why
	return x
}

// apartAs is a loss over two hosts beside which a peer's on one machine stands.
func apartAs(x *loss, name string) *loss {
	return &loss{name: "over two hosts: " + name, measure: x.measure, bar: x.bar, strike: x.strike, peer: x, noPeer: x.noPeer}
}

// peerLosses are those of a peer that this run needs.
func (r *comparison) peerLosses() []*loss {
	var list []*loss
	need := func(x *loss) {
		if x.noPeer == "" && !slices.Contains(list, x) {
			list = append(list, x)
		}
	}
	if r.Asked("failover") {
		for _, x := range losses {
			need(x)
		}
	}
	if r.hostsToBeHad() {
		for _, x := range hostLosses {
			if x.noPeer == "" {
				need(x.peer)
			}
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
		leave: func(ctx context.Context, s side) error { return a.lab.Remove(ctx, s.(*hostsLab).i.Name) },
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
	p.writer, errs[0] = h.bed.member(p.writerZone, h.i.Id)
	p.standby, errs[1] = h.bed.member(p.standbyZone, h.i.Id)
	return p, errors.Join(errs[:]...)
}
