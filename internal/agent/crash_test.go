package agent

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kurabe"
	"kurabe/internal/agent/unit"
	"kurabe/internal/engine"
	"kurabe/internal/hostlink"
)

// The end of a process wakes its worker; the first restart comes at once, and
// those of a server that crashes again and again come ever later, up to a bound.
func TestCrashedServerIsRestarted(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.start()
		b.send(wanted(1))
		for n := range 10 {
			starts, began := b.engine.Starts("db-1"), time.Now()
			b.engine.Crash("db-1")
			synctest.Wait()
			if n > 0 && b.engine.Starts("db-1") != starts {
				b.Fatalf("crash %d: restarted at once", n+1)
			}
			for b.engine.Starts("db-1") == starts {
				if r := b.last(); r.Running || r.Done {
					b.Errorf("crash %d: while it waits the host reports %+v", n+1, r)
				}
				time.Sleep(100 * time.Millisecond) // virtual
				b.send(wanted(1))                  // only a wake-up
			}
			want := time.Duration(0)
			if n > 0 {
				want = min(unit.PauseFirst<<n, unit.PauseMost)
			}
			if took := time.Since(began); took != want {
				b.Errorf("crash %d: restarted after %v, want %v", n+1, took, want)
			}
			synctest.Wait()
			b.wantServing(1)
			if got := b.last().Crashes; got != int64(n)+1 {
				b.Errorf("%d crashes counted, want %d", got, n+1)
			}
		}
		// After a calm time it all begins anew.
		time.Sleep(crashCalm + time.Second) // virtual
		b.engine.Crash("db-1")
		synctest.Wait()
		b.wantServing(1)
		b.engine.Crash("db-1")
		time.Sleep(2 * unit.PauseFirst) // virtual
		synctest.Wait()
		b.wantServing(1)
	})
}

// A crash of one process must not be taken for one of its successor: after a
// restart the new process is watched, and the old watch is over.
func TestRestartedServerIsWatched(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.start()
		b.send(wanted(1))
		next := wanted(2)
		next.Boot = 2
		b.send(next)
		b.wantServing(2)
		if got := b.last(); got.Crashes != 0 || b.engine.Starts("db-1") != 2 {
			b.Errorf("%d starts, %d crashes", b.engine.Starts("db-1"), got.Crashes)
		}
		began := time.Now()
		b.engine.Crash("db-1")
		synctest.Wait()
		b.wantServing(2)
		if b.engine.Starts("db-1") != 3 || time.Since(began) > 0 {
			b.Errorf("%d starts, after %v", b.engine.Starts("db-1"), time.Since(began))
		}
	})
}

// When the kernel kills one session, the server goes on and no process that we
// know ends: the counter is all there is to see.
func TestKilledSessionIsReported(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.start()
		b.send(wanted(1))
		b.engine.KillOne("db-1")
		time.Sleep(memoryLook) // virtual
		synctest.Wait()
		if got := b.last(); got.OOMKills != 1 || !got.Done || b.engine.Starts("db-1") != 1 {
			b.Errorf("%d starts, report %+v", b.engine.Starts("db-1"), got)
		}
	})
}

// Instances do not wait for each other, and one's steps never overlap.
func TestOneWorkerPerInstance(t *testing.T) {
	inBubble(t, func(b *bed) {
		f := &overlap{under: map[kurabe.InstanceID]int{}}
		b.before(f.before)
		b.start()
		for generation := kurabe.Generation(1); generation <= 20; generation++ {
			for _, id := range []kurabe.InstanceID{"db-1", "db-2", "db-3"} {
				a := wanted(generation)
				a.Instance, a.Boot = id, int64(generation)
				b.link.updates <- hostlink.Update{Orders: []kurabe.Word{a}}
			}
			time.Sleep(stepTime) // virtual: in the midst of steps
		}
		time.Sleep(time.Minute) // virtual
		synctest.Wait()
		if f.most != 1 || !f.abreast {
			b.Errorf("at most %d steps of one instance at once, instances abreast: %v", f.most, f.abreast)
		}
		for _, id := range []kurabe.InstanceID{"db-1", "db-2", "db-3"} {
			if !b.engine.Running(id) {
				b.Errorf("%s does not run", id)
			}
		}
	})
}

// stepTime is how long the steps of overlap take.
const stepTime = 50 * time.Millisecond

// overlap counts the steps that are under way.
type overlap struct {
	mu      sync.Mutex // guards the rest
	under   map[kurabe.InstanceID]int
	most    int  // steps of one instance at once
	abreast bool // two instances had a step at once
}

func (o *overlap) before(ctx context.Context, a kurabe.Assignment, _ engine.StepName) error {
	o.add(a.Instance, 1)
	defer o.add(a.Instance, -1)
	select {
	case <-time.After(stepTime): // virtual
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (o *overlap) add(id kurabe.InstanceID, n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.under[id] += n
	o.most = max(o.most, o.under[id])
	busy := 0
	for _, n := range o.under {
		busy += n
	}
	o.abreast = o.abreast || busy > 1
}
