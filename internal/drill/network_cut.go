package drill

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"kurabe/internal/netcut"
	"kurabe/internal/proc"
)

// cutOff are the servers of a group with those whom each is to reach no more: one from the
// others, and they from it. Those of this host are cut off here, the others by their hosts.
// It refuses what cannot be cut.
func (d *Drill) cutOff(ctx context.Context, l Look, off Server) (here []netcut.Process, remote []target, err error) {
	if slices.ContainsFunc(l.Servers, func(s Server) bool { return s.Host == d.Host }) {
		if err := netcut.Probe(); err != nil {
			return nil, nil, fmt.Errorf("this machine cannot cut servers off from each other: %w", err)
		}
	}
	for _, s := range l.Servers {
		if !s.Address.IsValid() {
			return nil, nil, fmt.Errorf("the address of %s is unknown", s.ID)
		}
	}
	for _, s := range l.Servers {
		if s.Host != d.Host {
			t, err := d.permitted(ctx, s, Fault{Action: Cut, For: d.Order.For, Peers: peers(l, s, off)})
			if err != nil {
				return nil, nil, err
			}
			remote = append(remote, t)
			continue
		}
		t, err := find(d.Data, s)
		if err != nil {
			return nil, nil, err
		}
		p, err := part(l, t, off)
		if err != nil {
			return nil, nil, err
		}
		here = append(here, p)
	}
	return here, remote, nil
}

// peers are those whom a server is to reach no more: the one that is cut off all, the others
// that one.
func peers(l Look, of, off Server) (list []netip.Addr) {
	for _, s := range l.Servers {
		if (of.ID == off.ID) != (s.ID == off.ID) {
			list = append(list, s.Address.Unmap())
		}
	}
	return list
}

// part is a server's part in a cut on this host.
func part(l Look, t target, off Server) (p netcut.Process, err error) {
	p.PID, p.Peers = t.process.PID, peers(l, t.Server, off)
	p.Workers, err = proc.Survivors(t.dataDir)
	return p, err
}

// cut has what a server and the others say to each other be lost for a time, or until ctx
// ends. Its end is the kernel's business: neither our death nor a freeze of ours delays it.
func (r *run) cut(ctx context.Context, t target) (failure error) {
	here, remote, err := r.cutOff(ctx, r.before, t.Server)
	if err != nil {
		return err
	}
	var c *netcut.Cut
	if len(here) > 0 {
		if c, err = netcut.Start(here, r.Order.For); err != nil {
			return err
		}
		defer func() { failure = errors.Join(failure, c.Close()) }()
	}
	r.fault = time.Now()
	r.watch.note(r.fault, FromDrill, "cuts off process %d from the other servers: %s, %s", t.pid(), name(t.ID), r.side(t))
	ctx, cancel := context.WithDeadline(ctx, r.fault.Add(r.Order.For))
	defer cancel()
	var holding sync.WaitGroup
	var held []Held
	var remoteFailure error
	holding.Go(func() {
		if held, remoteFailure = r.last(ctx, remote); remoteFailure != nil {
			cancel()
		}
	})
	if c != nil {
		if failure = r.hold(ctx, c, here, t.Server); failure != nil {
			cancel()
		}
	}
	holding.Wait()
	if failure = errors.Join(failure, remoteFailure); failure != nil {
		return failure
	}
	return r.reachable(c, held)
}

// reachable tells of the end of a cut, of which the part of this host is nil without one.
func (r *run) reachable(c *netcut.Cut, held []Held) (err error) {
	lost := uint64(0)
	if c != nil {
		if lost, err = c.Lost(); err != nil {
			return err
		}
	}
	for _, h := range held {
		lost += h.Lost
	}
	r.watch.note(time.Now(), FromDrill, "ends the cut; %d packets were dropped", lost)
	if lost == 0 {
		return errors.New("no packet was dropped, so the cut had no effect")
	}
	return nil
}

// hold has servers of this host cut off that are started meanwhile, too, as soon as they are
// seen, until ctx ends.
func (r *run) hold(ctx context.Context, c *netcut.Cut, list []netcut.Process, off Server) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	known := map[int]bool{}
	for _, p := range list {
		known[p.PID] = true
	}
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		look, _ := r.watch.newest()
		for _, s := range look.Servers {
			if s.Host != r.Host {
				continue
			}
			t, err := find(r.Data, s) // what the host tells is late
			if err != nil || known[t.process.PID] || !s.Address.IsValid() {
				continue
			}
			p, err := part(look, t, off)
			if err == nil {
				err = c.Add(p)
			}
			switch {
			case err == nil:
				known[p.PID] = true
			case t.process.Alive():
				return fmt.Errorf("cut %s off, which was started meanwhile: %w", s.ID, err)
			}
		}
	}
}
