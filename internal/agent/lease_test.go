package agent

import (
	"context"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/hostlink"
)

// fakeGuard enforces what it is told. fakeGuards hands out the newest.
type fakeGuard struct {
	until int64
	done  chan struct{}
}

func (g *fakeGuard) Extend(_ context.Context, until int64) error { g.until = until; return nil }
func (g *fakeGuard) Until(context.Context) (int64, error)        { return g.until, nil }
func (g *fakeGuard) Disarm(context.Context) error                { return nil }
func (g *fakeGuard) Done() <-chan struct{}                       { return g.done }

type fakeGuards struct{ guard *fakeGuard }

func (f *fakeGuards) Open(context.Context, kurabe.Assignment) (Guard, error) { return f.guard, nil }
func (f *fakeGuards) Find(context.Context, kurabe.Assignment) (Guard, error) { return f.guard, nil }

// fakeLeases is a word of the service.
type fakeLeases struct{ Leases }

func (fakeLeases) Until(kurabe.InstanceID) int64 { return int64(3 * time.Second) }

// A guard that takes the place of one that died enforces the same lease at once: until the
// service's next word the server would be without one, and for good if that never comes.
func TestLeaseOfAnotherGuard(t *testing.T) {
	for name, enforced := range map[string]int64{"by the service's word": int64(3 * time.Second), "by the standby's": int64(4 * time.Second)} {
		guards := &fakeGuards{&fakeGuard{done: make(chan struct{})}}
		w := &worker{agent: &Agent{Config: Config{Guards: guards, Leases: fakeLeases{hostlink.NewLeases()}, Boottime: func() int64 { return int64(time.Second) }}}}
		l := &lease{worker: w, until: enforced}
		var guard Guard
		if err := l.extend(t.Context(), kurabe.Assignment{}, &guard); err != nil {
			t.Fatal(err)
		}
		if guards.guard.until != enforced {
			t.Errorf("%s: the guard ends the server at %d, want %d", name, guards.guard.until, enforced)
		}
	}
}
