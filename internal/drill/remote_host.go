package drill

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// holdEvery is how often another host is told to keep a freeze or a cut up.
	holdEvery = time.Second
	// holdPatience is how long its end is asked for: after HoldTime it has ended by itself.
	holdPatience = HoldTime + 2*time.Second
)

// strikeRemote has a server's own host do to it what it permitted.
func (r *run) strikeRemote(ctx context.Context, t target) error {
	// What was ordered has to be known, so the question is not cut off.
	if err := r.Service.Strike(context.WithoutCancel(ctx), *t.permit); err != nil {
		return fmt.Errorf("have %s %s by host %s: %w", t.ID, t.permit.Done(), t.Host, err)
	}
	r.watch.note(time.Now(), FromDrill, "host %s has %s", t.Host, t.permit.did(t.pid()))
	return nil
}

// freezeRemote has another host freeze a server of its own for a time, or until ctx ends.
func (r *run) freezeRemote(ctx context.Context, t target) error {
	r.fault = time.Now()
	r.watch.note(r.fault, FromDrill, "host %s freezes process %d and its children: %s, %s", t.Host, t.pid(), name(t.ID), r.side(t))
	frozen, cancel := context.WithDeadline(ctx, r.fault.Add(r.Order.For))
	defer cancel()
	held, err := r.last(frozen, []target{t})
	switch {
	case err != nil:
		return err
	case held[0].Ended:
		r.watch.note(time.Now(), FromDrill, endedFrozen, t.pid())
	default:
		r.watch.note(time.Now(), FromDrill, "host %s resumes process %d", t.Host, t.pid())
	}
	return nil
}

// last has other hosts do what they permitted, at once, and keep it up until ctx ends. What
// each of them has to say comes in the order of the targets.
func (r *run) last(ctx context.Context, list []target) ([]Held, error) {
	held, errs := make([]Held, len(list)), make([]error, len(list))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	for n, t := range list {
		all.Go(func() {
			if errs[n] = r.strikeRemote(ctx, t); errs[n] != nil {
				cancel() // a part of a fault is none
				_, end := r.endRemote(ctx, t)
				errs[n] = errors.Join(errs[n], end)
				return
			}
			held[n], errs[n] = r.holdRemote(ctx, t)
		})
	}
	all.Wait()
	return held, errors.Join(errs...)
}

// holdRemote has another host keep up what it does until ctx ends, and then end it.
func (r *run) holdRemote(ctx context.Context, t target) (Held, error) {
	tick := time.NewTicker(holdEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return r.endRemote(ctx, t)
		case <-tick.C:
		}
		// One word that is not heard means nothing; of many that are not the host has its own idea.
		if h, err := r.Service.Hold(ctx, *t.permit, false); err == nil && h.Over {
			return r.ended(h, t)
		}
	}
}

// endRemote has another host end what it does.
func (r *run) endRemote(ctx context.Context, t target) (h Held, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), holdPatience)
	defer cancel()
	err = retry(ctx, func() (err error) {
		h, err = r.Service.Hold(ctx, *t.permit, true)
		return err
	})
	if err != nil {
		return h, fmt.Errorf("cannot tell whether %s is still %s; its host ends the fault by itself, at most %v after the drill's last message: %w", t.ID, t.permit.Done(), HoldTime, err)
	}
	return r.ended(h, t)
}

// ended says what went wrong while it lasted.
func (r *run) ended(h Held, t target) (Held, error) {
	switch {
	case h.Failure != "":
		return h, fmt.Errorf("host %s: %s", t.Host, h.Failure)
	case h.Forgotten:
		r.watch.note(time.Now(), FromDrill, "the agent of host %s was restarted, which ended the fault", t.Host)
	case h.Silent:
		r.watch.note(time.Now(), FromDrill, "host %s heard nothing of the drill for %v and ended the fault", t.Host, HoldTime)
	}
	return h, nil
}
