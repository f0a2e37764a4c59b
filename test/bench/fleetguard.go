package main

import (
	"context"
	"sync"
	"time"

	"kurabe"
	"kurabe/internal/agent"
	"kurabe/internal/engine/fake"
	"kurabe/internal/hostlink"
	"kurabe/internal/warden"
)

// farGuards end servers of a fake engine at the end of their lease, in the place of wardens.
type farGuards struct {
	engine *fake.Engine
	mu     sync.Mutex // guards of, and the guards
	of     map[kurabe.InstanceID]*farGuard
}

type farGuard struct {
	all   *farGuards
	id    kurabe.InstanceID
	done  chan struct{}
	until int64 // of hostlink.Boottime
	timer *time.Timer
}

// Open implements agent.Guards.
func (g *farGuards) Open(_ context.Context, a kurabe.Assignment) (agent.Guard, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.of[a.Instance] == nil {
		g.of[a.Instance] = &farGuard{all: g, id: a.Instance, done: make(chan struct{})}
	}
	return g.of[a.Instance], nil
}

// Find implements agent.Guards.
func (g *farGuards) Find(_ context.Context, a kurabe.Assignment) (agent.Guard, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w := g.of[a.Instance]; w != nil {
		return w, nil
	}
	return nil, nil
}

// endLocked ends a guard, not its server.
func (g *farGuards) endLocked(w *farGuard) {
	if g.of[w.id] != w {
		return
	}
	delete(g.of, w.id)
	close(w.done)
	if w.timer != nil {
		w.timer.Stop()
	}
}

// gone ends all of them, as the end of the machine does.
func (g *farGuards) gone() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, w := range g.of {
		g.endLocked(w)
	}
}

// expire ends a server whose lease is over.
func (w *farGuard) expire() {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	if w.all.of[w.id] != w || w.until > hostlink.Boottime() {
		return
	}
	w.all.engine.Crash(w.id)
	w.all.endLocked(w)
}

// Extend implements agent.Guard.
func (w *farGuard) Extend(_ context.Context, until int64) error {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	now := hostlink.Boottime()
	switch {
	case w.all.of[w.id] != w || w.until > 0 && w.until <= now:
		return warden.ErrEnded
	case until < w.until:
		return warden.ErrBackwards
	}
	w.until = until
	if w.timer != nil {
		w.timer.Stop()
	}
	w.timer = time.AfterFunc(time.Duration(max(until-now, 1)), w.expire)
	return nil
}

// Until implements agent.Guard.
func (w *farGuard) Until(context.Context) (int64, error) {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	return w.until, nil
}

// Disarm implements agent.Guard.
func (w *farGuard) Disarm(context.Context) error {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	w.all.endLocked(w)
	return nil
}

// Done implements agent.Guard.
func (w *farGuard) Done() <-chan struct{} { return w.done }
