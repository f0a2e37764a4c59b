package fake

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"kurabe"
)

// Guards end servers of an engine at the end of their lease, in the place of wardens. They outlive
// the agent of their host, and stand still with it.
type Guards struct {
	Engine *Engine
	// Boottime is what leases count by.
	Boottime func() int64
	// Until is how long it takes until that shows a time; nil: as long as the difference is.
	Until func(int64) time.Duration
	// Still says whether the machine stands still; nil: it never does.
	Still func() bool
	// Ended is told of each server that was ended, by the newest order for which its guard was
	// opened; nil: nobody is. Guards must not be asked from within.
	Ended func(kurabe.Assignment)

	mu sync.Mutex // guards the rest, and all guards
	of map[kurabe.InstanceID]*Guard
}

// Guard ends one server with its lease.
type Guard struct {
	all   *Guards
	order kurabe.Assignment
	until int64 // of Boottime
	timer *time.Timer
	done  chan struct{}
}

var (
	errEnded     = errors.New("the guard has ended")
	errBackwards = errors.New("a lease is never made shorter")
)

// Open finds the guard of a server, or begins it.
func (g *Guards) Open(a kurabe.Assignment) *Guard {
	g.mu.Lock()
	defer g.mu.Unlock()
	w := g.of[a.Instance]
	if w == nil {
		w = &Guard{all: g, done: make(chan struct{})}
		if g.of == nil {
			g.of = map[kurabe.InstanceID]*Guard{}
		}
		g.of[a.Instance] = w
	}
	w.order = a
	return w
}

// Find returns the guard of a server, nil when there is none.
func (g *Guards) Find(id kurabe.InstanceID) *Guard {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.of[id]
}

// GoOn is for a machine that has stood still: what was due meanwhile is done before it returns.
func (g *Guards) GoOn() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, w := range g.allLocked() {
		if w.until > 0 {
			w.expireLocked()
		}
	}
}

// Gone ends all of them without their servers, as the end of the machine does.
func (g *Guards) Gone() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, w := range g.allLocked() {
		w.endLocked()
	}
}

func (g *Guards) allLocked() (all []*Guard) {
	for _, w := range g.of {
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b *Guard) int { return a.order.Instance.Number() - b.order.Instance.Number() })
	return all
}

// Extend moves the end of the lease.
func (w *Guard) Extend(_ context.Context, until int64) error {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	switch now := w.all.Boottime(); {
	case w.overLocked() || w.until > 0 && w.until <= now:
		return errEnded
	case until < w.until:
		return errBackwards
	}
	w.until = until
	w.windLocked()
	return nil
}

// windLocked has the lease end when it ends.
func (w *Guard) windLocked() {
	if w.timer != nil {
		w.timer.Stop()
	}
	rest := time.Duration(max(w.until-w.all.Boottime(), 1))
	if w.all.Until != nil {
		rest = w.all.Until(w.until)
	}
	w.timer = time.AfterFunc(rest, func() {
		w.all.mu.Lock()
		defer w.all.mu.Unlock()
		w.expireLocked()
	})
}

// expireLocked ends a server whose lease is over, unless its machine stands still.
func (w *Guard) expireLocked() {
	switch {
	case w.overLocked() || w.all.Still != nil && w.all.Still():
		return
	case w.until > w.all.Boottime():
		w.windLocked()
		return
	}
	w.endLocked()
	if !w.all.Engine.Has(Outlives) {
		w.all.Engine.Crash(w.order.Instance)
	}
	if w.all.Ended != nil {
		w.all.Ended(w.order)
	}
}

func (w *Guard) overLocked() bool { return w.all.of[w.order.Instance] != w }

// endLocked ends a guard, not its server.
func (w *Guard) endLocked() {
	if w.overLocked() {
		return
	}
	delete(w.all.of, w.order.Instance)
	close(w.done)
	if w.timer != nil {
		w.timer.Stop()
	}
}

// Until is the end of the lease, 0 of a guard that has none yet.
func (w *Guard) Until(context.Context) (int64, error) {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	return w.until, nil
}

// Disarm ends the guard without its server.
func (w *Guard) Disarm(context.Context) error {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	w.endLocked()
	return nil
}

// Done closes when the guard is gone.
func (w *Guard) Done() <-chan struct{} { return w.done }
