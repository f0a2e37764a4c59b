package simulated

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"kurabe"
	"kurabe/internal/agent"
	"kurabe/internal/engine/fake"
	"kurabe/internal/warden"
)

// guards are the wardens of a machine. They outlive its agent, and stand still with the machine.
type guards struct {
	h  *host
	mu sync.Mutex // guards of
	of map[kurabe.InstanceID]*guard
}

// guard ends one server with its lease.
type guard struct {
	g         *guards
	id        kurabe.InstanceID
	addresses []netip.Addr
	done      chan struct{}
	until     int64 // of the host's boottime; guards.mu guards it and what follows
	timer     *time.Timer
}

// Open implements agent.Guards.
func (g *guards) Open(ctx context.Context, a kurabe.Assignment) (agent.Guard, error) {
	if err := g.h.agent.pass(ctx); err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	w := g.of[a.Instance]
	if w == nil {
		w = &guard{g: g, id: a.Instance, done: make(chan struct{})}
		g.of[a.Instance] = w
	}
	w.addresses = nil
	for _, text := range []string{a.Address, a.ReaderAddress} {
		if address, err := netip.ParseAddr(text); err == nil && !address.IsLoopback() {
			w.addresses = append(w.addresses, address)
		}
	}
	return w, nil
}

// Find implements agent.Guards.
func (g *guards) Find(ctx context.Context, a kurabe.Assignment) (agent.Guard, error) {
	if err := g.h.agent.pass(ctx); err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if w := g.of[a.Instance]; w != nil {
		return w, nil
	}
	return nil, nil
}

// Extend implements agent.Guard.
func (w *guard) Extend(ctx context.Context, until int64) error {
	if err := w.g.h.agent.pass(ctx); err != nil {
		return err
	}
	w.g.mu.Lock()
	defer w.g.mu.Unlock()
	switch now := w.g.h.boottime(); {
	case w.over() || w.until > 0 && w.until <= now:
		return warden.ErrEnded
	case until < w.until:
		return warden.ErrBackwards
	}
	w.until = until
	w.wind()
	return nil
}

// wind has the lease end when it ends. guards.mu is held.
func (w *guard) wind() {
	if w.timer != nil {
		w.timer.Stop()
	}
	w.timer = time.AfterFunc(w.g.h.until(w.until), func() { w.g.expire(w) })
}

func (w *guard) over() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// expire ends a server whose lease is over, unless its machine stands still.
func (g *guards) expire(w *guard) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case w.over() || g.h.isStill():
		return
	case w.until > g.h.boottime():
		w.wind()
		return
	}
	g.endLocked(w)
	if !g.h.engine.Has(fake.Outlives) {
		g.h.engine.Crash(w.id)
	}
	for _, a := range w.addresses {
		_ = g.h.Drop(a)
	}
	g.h.w.logf("%s: the lease of %s is over, and its server ended", g.h.id, w.id)
}

func (g *guards) endLocked(w *guard) {
	if !w.over() {
		close(w.done)
	}
	if g.of[w.id] == w {
		delete(g.of, w.id)
	}
	if w.timer != nil {
		w.timer.Stop()
	}
}

// expireAll is for a machine that goes on.
func (g *guards) expireAll() {
	g.mu.Lock()
	var all []*guard
	for _, w := range g.of {
		all = append(all, w)
	}
	g.mu.Unlock()
	for _, w := range all {
		if w.until > 0 {
			g.expire(w)
		}
	}
}

// gone ends all without their servers, as the end of the machine does.
func (g *guards) gone() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, w := range g.of {
		g.endLocked(w)
	}
}

// Until implements agent.Guard.
func (w *guard) Until(ctx context.Context) (int64, error) {
	if err := w.g.h.agent.pass(ctx); err != nil {
		return 0, err
	}
	w.g.mu.Lock()
	defer w.g.mu.Unlock()
	return w.until, nil
}

// Disarm implements agent.Guard.
func (w *guard) Disarm(ctx context.Context) error {
	if err := w.g.h.agent.pass(ctx); err != nil {
		return err
	}
	w.g.mu.Lock()
	defer w.g.mu.Unlock()
	w.g.endLocked(w)
	return nil
}

// Done implements agent.Guard.
func (w *guard) Done() <-chan struct{} { return w.done }
