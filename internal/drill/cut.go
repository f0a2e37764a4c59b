package drill

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kurabe/internal/netcut"
	"kurabe/internal/proc"
)

// cutOff are the servers of a group with those whom each is to reach no more: one from the
// others, and they from it. It refuses what cannot be cut here.
func (d *Drill) cutOff(l Look, off target) (list []netcut.Process, err error) {
	if err := netcut.Probe(); err != nil {
		return nil, fmt.Errorf("this machine cannot cut servers off from each other: %w", err)
	}
	for _, s := range l.Servers {
		switch {
		case s.Host != d.Host:
			return nil, fmt.Errorf("%s is on %s: a cut is made of packets on one machine, so it is for servers that are all on this one (%s)", s.ID, s.Host, d.Host)
		case !s.Address.IsValid():
			return nil, fmt.Errorf("it is not known where %s listens", s.ID)
		}
	}
	for _, s := range l.Servers {
		t, err := find(d.Data, s)
		if err != nil {
			return nil, err
		}
		p, err := part(l, t, off.Server)
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

// part is a server's part in a cut: the one that is cut off reaches nobody, and nobody it.
func part(l Look, t target, off Server) (p netcut.Process, err error) {
	p.PID = t.process.PID
	for _, s := range l.Servers {
		if (t.ID == off.ID) != (s.ID == off.ID) {
			p.Peers = append(p.Peers, s.Address)
		}
	}
	p.Workers, err = proc.Survivors(t.dataDir)
	return p, err
}

// cut has what a server and the others say to each other be lost for a time, or until ctx
// ends. Its end is the kernel's business: neither our death nor a freeze of ours delays it.
func (r *run) cut(ctx context.Context, t target) (failure error) {
	list, err := r.cutOff(r.before, t)
	if err != nil {
		return err
	}
	c, err := netcut.Start(list, r.Order.For)
	if err != nil {
		return err
	}
	r.fault = time.Now()
	defer func() { failure = errors.Join(failure, c.Close()) }()
	r.watch.note(r.fault, FromDrill, "cuts process %d off from the other servers: %s, %s", t.process.PID, name(t.ID), r.side(t))
	ctx, cancel := context.WithDeadline(ctx, r.fault.Add(r.Order.For))
	defer cancel()
	if err := r.hold(ctx, c, list, t); err != nil {
		return err
	}
	lost, err := c.Lost()
	if err != nil {
		return err
	}
	r.watch.note(time.Now(), FromDrill, "has the servers reach each other again; %d packets were lost", lost)
	if lost == 0 {
		return errors.New("no packet was lost: nothing was cut off")
	}
	return nil
}

// hold has servers cut off that are started meanwhile, too, as soon as they are seen, until
// ctx ends.
func (r *run) hold(ctx context.Context, c *netcut.Cut, list []netcut.Process, off target) error {
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
			t, err := find(r.Data, s) // what the host tells is late
			if err != nil || known[t.process.PID] || !s.Address.IsValid() {
				continue
			}
			p, err := part(look, t, off.Server)
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
