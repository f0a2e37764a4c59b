package agent

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kurabe"
	"kurabe/internal/agent/unit"
	"kurabe/internal/engine"
)

func TestNewer(t *testing.T) {
	other := wanted(5)
	other.Settings = map[string]string{"work_mem": "8192"}
	for _, c := range []struct {
		name  string
		next  kurabe.Assignment
		fresh bool
		words string
	}{
		{"higher", wanted(6), true, ""},
		{"the same again", wanted(5), false, ""},
		{"lower", wanted(4), false, "generation 4 is older than 5"},
		{"same generation, other content", other, false, "generation 5 is in force with other content"},
	} {
		fresh, err := unit.Newer(wanted(5), c.next)
		if fresh != c.fresh || (err == nil) != (c.words == "") || err != nil && !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v, %v; want %v, %q", c.name, fresh, err, c.fresh, c.words)
		}
	}
}

func TestStaleAssignmentIsRefused(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.start()
		b.send(wanted(5))
		b.wantServing(5)
		reports, steps := len(b.heard()), len(b.steps())
		b.send(with(wanted(4), kurabe.GoalAbsent))
		b.send(with(wanted(5), kurabe.GoalStopped))
		b.send(wanted(5))
		b.wantSaved(5)
		b.wantServing(5)
		if len(b.heard()) != reports || len(b.steps()) != steps {
			b.Errorf("it was obeyed: steps %v, reports %+v", b.steps()[steps:], b.heard()[reports:])
		}
		b.send(with(wanted(6), kurabe.GoalStopped))
		b.wantSaved(6)
		if b.engine.Running("db-1") || !b.last().Done {
			b.Errorf("a higher generation is not obeyed: %+v", b.last())
		}
	})
}

// Each step finds its own assignment on disk, whatever the process dies of next.
func TestAssignmentIsSavedBeforeObeyed(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.before(func(_ context.Context, a kurabe.Assignment, step engine.StepName) error {
			list, err := b.agent.loadSaved()
			if err != nil || len(list) != 1 {
				b.Errorf("at %s: %d assignments are saved, %v", step, len(list), err)
			} else if _, err := unit.Newer(list[0], a); err != nil || list[0].Generation != a.Generation {
				b.Errorf("at %s of generation %d, %d is saved: %v", step, a.Generation, list[0].Generation, err)
			}
			return nil
		})
		b.start()
		b.send(wanted(1))
		b.send(with(wanted(2), kurabe.GoalStopped))
		b.send(wanted(3))
		b.wantServing(3)
		// A verifier lets nobody log in, and is nobody else's business.
		for path, mode := range map[string]os.FileMode{b.savedFile(): 0o600, filepath.Dir(b.savedFile()): 0o700} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
				b.Errorf("%s: %v, %v; want mode %o", path, info, err, mode)
			}
		}
	})
}

// blockSaving makes the disk refuse assignments, whoever the test runs as.
func (b *bed) blockSaving() (unblock func()) {
	b.Helper()
	dir := filepath.Dir(b.savedFile())
	if err := os.Rename(dir, dir+".away"); err != nil && !os.IsNotExist(err) {
		b.Fatal(err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		b.Fatal(err)
	}
	return func() {
		b.Helper()
		if err := os.Remove(dir); err != nil {
			b.Fatal(err)
		}
		if err := os.Rename(dir+".away", dir); err != nil && !os.IsNotExist(err) {
			b.Fatal(err)
		}
	}
}

func TestUnsavedAssignmentIsNotObeyed(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.start()
		unblock := b.blockSaving()
		b.send(wanted(1))
		time.Sleep(3 * unit.SaveRetry) // virtual
		synctest.Wait()
		if f := b.last().Failure; f == nil || f.Kind != kurabe.FailureStorage || f.Step != "save-assignment" || f.Attempts < 3 || b.last().Generation != 1 {
			b.Errorf("report %+v, failure %+v; want a failure of storage, tried every %v", b.last(), f, unit.SaveRetry)
		}
		if len(b.steps()) > 0 {
			b.Errorf("it was obeyed: %v", b.steps())
		}
		unblock()
		time.Sleep(unit.SaveRetry) // virtual
		synctest.Wait()
		b.wantSaved(1)
		b.wantServing(1)
	})
}

// While a newer assignment cannot be saved, the one in force is still obeyed,
// and the report speaks of what the user waits for.
func TestUnsavedAssignmentLeavesTheOldInForce(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.start()
		b.send(wanted(1))
		unblock := b.blockSaving()
		b.send(with(wanted(3), kurabe.GoalStopped))
		b.send(wanted(2)) // of a planner that was deposed since
		b.engine.Crash("db-1")
		synctest.Wait()
		if r := b.last(); !b.engine.Running("db-1") || r.Generation != 3 || r.Done || r.Failure == nil || r.Failure.Kind != kurabe.FailureStorage {
			b.Errorf("running %v, report %+v", b.engine.Running("db-1"), r)
		}
		if slices.ContainsFunc(b.steps(), func(s string) bool { return !strings.HasSuffix(s, "@1") }) {
			b.Errorf("what was not saved was obeyed: %v", b.steps())
		}
		unblock()
		time.Sleep(unit.SaveRetry) // virtual
		synctest.Wait()
		b.wantSaved(3)
		if r := b.last(); b.engine.Running("db-1") || !r.Done || r.Generation != 3 || r.Failure != nil {
			b.Errorf("once it is saved: %+v", r)
		}
	})
}

// A lower generation is refused although the higher one only waits to be saved.
func TestStaleAssignmentDoesNotReplaceTheWaiting(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.start()
		b.send(wanted(1))
		unblock := b.blockSaving()
		b.send(with(wanted(3), kurabe.GoalStopped))
		unblock()
		b.send(with(wanted(2), kurabe.GoalAbsent))
		time.Sleep(unit.SaveRetry) // virtual
		synctest.Wait()
		b.wantSaved(3)
		if slices.ContainsFunc(b.steps(), func(s string) bool { return strings.HasSuffix(s, "@2") }) {
			b.Errorf("the lower generation was obeyed: %v", b.steps())
		}
	})
}

// A step may wait for an hour; a new assignment does not.
func TestNewAssignmentCutsTheStep(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.before(func(ctx context.Context, a kurabe.Assignment, step engine.StepName) error {
			if a.Generation == 1 && step == engine.StepWaitReady {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		})
		b.start()
		b.send(wanted(1))
		began := time.Now()
		b.send(with(wanted(2), kurabe.GoalStopped))
		if r := b.last(); b.engine.Running("db-1") || !r.Done || r.Generation != 2 || time.Since(began) > 0 {
			b.Errorf("after %v: running %v, %+v", time.Since(began), b.engine.Running("db-1"), r)
		}
		for _, r := range b.heard() {
			if r.Failure != nil {
				b.Errorf("the cut is told as a failure: %+v", r.Failure)
			}
		}
	})
}

// What a look found is acted on only under the assignment that it was made for.
func TestStepOfAnOldLookIsNotBegun(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.start()
		looks := 0
		b.onLook(func(ctx context.Context, _ kurabe.InstanceID) error {
			if looks++; looks == 1 {
				b.agent.workers.Get(ctx, "db-1").Receive(with(wanted(2), kurabe.GoalStopped))
			}
			return nil
		})
		b.send(wanted(1))
		if r := b.last(); len(b.steps()) > 0 || r.Generation != 2 || !r.Done {
			b.Errorf("steps %v, report %+v", b.steps(), r)
		}
	})
}
