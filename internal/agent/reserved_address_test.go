package agent

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kurabe"
	"kurabe/internal/engine"
)

// fakeReserve notes which addresses are reserved.
type fakeReserve struct {
	mu   sync.Mutex
	held []string
}

type reservation func()

func (r reservation) Close() error { r(); return nil }

func (f *fakeReserve) reserve(at netip.AddrPort) (io.Closer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if slices.Contains(f.held, at.String()) {
		return nil, errors.New("in use")
	}
	f.held = append(f.held, at.String())
	return reservation(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.held = slices.DeleteFunc(f.held, func(h string) bool { return h == at.String() })
	}), nil
}

func (f *fakeReserve) expect(t *testing.T, when string, want ...string) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	slices.Sort(f.held)
	if !slices.Equal(f.held, want) {
		t.Errorf("%s: reserved is %v, not %v", when, f.held, want)
	}
}

// While no server has the address of an instance, nobody else can take it.
func TestReservedAddress(t *testing.T) {
	const at = "127.66.0.1:5432"
	inBubble(t, func(b *bed) {
		f := &fakeReserve{}
		b.reserve = f.reserve
		b.before(func(_ context.Context, _ kurabe.Assignment, step engine.StepName) error {
			switch step {
			case engine.StepCopyTemplate:
				f.expect(t, "being made", at)
			case engine.StepStart, engine.StepWaitReady, engine.StepProbe:
				f.expect(t, string(step))
			}
			return nil
		})
		b.start()
		b.send(wanted(1))
		f.expect(t, "running")
		b.send(with(wanted(2), kurabe.GoalStopped))
		f.expect(t, "stopped", at)
		b.stop()
		f.expect(t, "without an agent")
		b.start()
		f.expect(t, "found stopped", at)
		b.before(func(_ context.Context, _ kurabe.Assignment, step engine.StepName) error {
			if step == engine.StepStart {
				return errTest
			}
			return nil
		})
		b.send(wanted(3))
		time.Sleep(time.Second) // virtual
		synctest.Wait()
		b.agent.workers.List()[0].Wake()
		synctest.Wait()
		f.expect(t, "failing", at)
		b.before(nil)
		time.Sleep(time.Hour)
		synctest.Wait()
		f.expect(t, "running again")
		b.send(with(wanted(4), kurabe.GoalAbsent))
		f.expect(t, "removed")
	})
}

// The endpoint of a pair that is stopped has neither a gateway nor a server.
func TestReservedEndpoint(t *testing.T) {
	inBubble(t, func(b *bed) {
		f := &fakeReserve{}
		b.reserve = f.reserve
		b.start()
		pair := func(generation kurabe.Generation, goal kurabe.Goal) kurabe.Assignment {
			a := elsewhere(wanted(generation))
			a.Goal = goal
			return a
		}
		own := pair(1, "").ListensAt + ":5432"
		b.send(pair(1, kurabe.GoalRunning))
		f.expect(t, "running")
		b.send(pair(2, kurabe.GoalStopped))
		time.Sleep(time.Minute) // the endpoint lingers for a next primary
		synctest.Wait()
		f.expect(t, "stopped", "127.66.0.1:5432", own)
		b.send(pair(3, kurabe.GoalRunning))
		f.expect(t, "running again")
		b.send(pair(4, kurabe.GoalStopped))
		time.Sleep(time.Minute)
		b.send(pair(5, kurabe.GoalAbsent))
		synctest.Wait()
		f.expect(t, "removed")
	})
}

// What the next step takes itself is not held: a copy from another host comes in there.
func TestTakesAddress(t *testing.T) {
	for step, want := range map[engine.StepName]bool{
		engine.StepStart: true, engine.StepClone: true, engine.StepReattach: true, engine.StepCopyTemplate: false, engine.StepRestoreSnapshot: false,
	} {
		if got := takesAddress([]engine.Step{{Name: step}}); got != want {
			t.Errorf("%s: %v", step, got)
		}
	}
	if takesAddress(nil) {
		t.Error("nothing to do takes an address")
	}
}
