package agent

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"kurabe"
	"kurabe/internal/agent/unit"
	"kurabe/internal/engine"
)

func TestBackoff(t *testing.T) {
	if got := unit.Backoff(0); got != unit.PauseFirst/5 {
		t.Errorf("the second try comes after %v", got)
	}
	seen := map[time.Duration]bool{}
	for n := 1; n < 2000; n++ {
		most := unit.PauseMost
		if n < 7 { // 0.5 s doubled six times is more than 30 s
			most = unit.PauseFirst << (n - 1)
		}
		got := unit.Backoff(n)
		if got < most/2 || got >= most {
			t.Fatalf("before try %d: %v; want from %v to %v", n+1, got, most/2, most)
		}
		seen[got] = true
	}
	if len(seen) < 1000 {
		t.Errorf("only %d different pauses: many instances would act as one", len(seen))
	}
}

// try is one time that a step was tried.
type try struct {
	at         time.Time
	generation kurabe.Generation
}

// failAt fails one step always; what it returns tells of the tries so far.
func (b *bed) failAt(fails engine.StepName, how error) func() []try {
	var tries []try
	b.before(func(_ context.Context, a kurabe.Assignment, step engine.StepName) error {
		if step != fails {
			return nil
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		tries = append(tries, try{time.Now(), a.Generation})
		return how
	})
	return func() []try {
		b.mu.Lock()
		defer b.mu.Unlock()
		return slices.Clone(tries)
	}
}

// A failed step is tried again after pauses that grow to a bound, whatever wakes
// the worker meanwhile.
func TestFailedStepBacksOff(t *testing.T) {
	inBubble(t, func(b *bed) {
		tried := b.failAt(engine.StepStart, errTest)
		b.start()
		b.send(wanted(1))
		for range 600 {
			time.Sleep(time.Second) // virtual
			b.send(wanted(1))       // the same again: only a wake-up
		}
		tries := tried()
		if len(tries) < 600/30 || len(tries) > 60 {
			b.Fatalf("%d tries in 10 minutes", len(tries))
		}
		for n := 1; n < len(tries); n++ {
			pause := tries[n].at.Sub(tries[n-1].at)
			most := min(unit.PauseFirst<<min(max(n-2, 0), 10), unit.PauseMost)
			least := most / 2
			if n == 1 {
				least, most = unit.PauseFirst/5, unit.PauseFirst/5
			}
			if pause < least || pause > most {
				b.Errorf("pause before try %d: %v; want from %v to %v", n+1, pause, least, most)
			}
		}
		if f := b.last().Failure; f == nil || f.Attempts < 10 || b.last().Done {
			b.Errorf("report %+v, failure %+v", b.last(), f)
		}
	})
}

// A new assignment may be the cure: it is tried at once, with a count of its own,
// and no report of it carries the failure of the one before.
func TestNewAssignmentEndsThePause(t *testing.T) {
	inBubble(t, func(b *bed) {
		tried := b.failAt(engine.StepStart, &engine.StartError{Kind: kurabe.FailureNetwork, Message: "address in use"})
		b.start()
		b.send(wanted(1))
		time.Sleep(10 * time.Minute) // virtual: the pauses are as long as they get
		synctest.Wait()
		before, reports := len(tried()), len(b.heard())
		began := time.Now()
		b.send(wanted(2))
		if more := tried()[before:]; len(more) != 1 || more[0] != (try{began, 2}) {
			b.Fatalf("tries at %v: %v", began, more)
		}
		for n, r := range b.heard()[reports:] {
			if r.Generation != 2 || r.Failure != nil && (r.Failure.Attempts != 1 || r.Failure.At.Before(began)) {
				b.Errorf("report %d of generation %d: %+v", n+1, r.Generation, r.Failure)
			}
		}
		time.Sleep(unit.PauseFirst) // virtual
		synctest.Wait()
		if f := b.last().Failure; len(tried()) < before+2 || f == nil || f.Attempts < 2 {
			b.Errorf("the second try of the new one did not come soon: %v, %+v", tried()[before:], f)
		}
		b.before(nil)
		b.send(wanted(3))
		b.wantServing(3)
	})
}

// A server that starts and then does not come up fails at a later step each
// time: its first steps must not end the streak.
func TestStreakOfTheSameStep(t *testing.T) {
	inBubble(t, func(b *bed) {
		tries := 0
		b.before(func(_ context.Context, _ kurabe.Assignment, step engine.StepName) error {
			if step != engine.StepWaitReady || tries >= 5 {
				return nil
			}
			tries++
			b.engine.Crash("db-1")
			return fmt.Errorf("wait for it: %w", &engine.StartError{Kind: kurabe.FailureParameters, Message: "FATAL: no such thing"})
		})
		b.start()
		b.send(wanted(1))
		time.Sleep(10 * time.Minute) // virtual
		synctest.Wait()
		most := 0
		for _, r := range b.heard() {
			if f := r.Failure; f != nil {
				most = max(most, f.Attempts)
				if f.Kind != kurabe.FailureParameters || f.Message != "FATAL: no such thing" || f.Step != string(engine.StepWaitReady) {
					b.Errorf("failure %+v", f)
				}
			}
		}
		if tries != 5 || most != 5 {
			b.Errorf("%d tries, %d counted", tries, most)
		}
		b.wantServing(1)
	})
}

func TestFailureKinds(t *testing.T) {
	foreign := wanted(1)
	foreign.Engine = "db2"
	for _, c := range []struct {
		name       string
		assignment kurabe.Assignment
		fails      engine.StepName
		how        error
		want       kurabe.Failure
	}{
		{"refused settings", wanted(1), engine.StepStart, &engine.StartError{Kind: kurabe.FailureParameters, Message: "unknown"},
			kurabe.Failure{Kind: kurabe.FailureParameters, Step: "start", Message: "unknown"}},
		{"taken port", wanted(1), engine.StepStart, &engine.StartError{Kind: kurabe.FailureNetwork, Message: "in use"},
			kurabe.Failure{Kind: kurabe.FailureNetwork, Step: "start", Message: "in use"}},
		{"anything else", wanted(1), engine.StepProbe, errTest,
			kurabe.Failure{Kind: kurabe.FailureOther, Step: "probe", Message: errTest.Error()}},
		{"no such engine", foreign, "", nil,
			kurabe.Failure{Kind: kurabe.FailureOther, Step: "find-engine", Message: "engine db2 is not offered by this host"}},
		{"a look that fails", wanted(1), "look", errTest,
			kurabe.Failure{Kind: kurabe.FailureOther, Step: "observe", Message: errTest.Error()}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				b.failAt(c.fails, c.how)
				if c.fails == "look" {
					b.onLook(func(context.Context, kurabe.InstanceID) error { return c.how })
				}
				b.start()
				b.send(c.assignment)
				c.want.Attempts, c.want.At, c.want.Since = 1, time.Now().UTC(), time.Now().UTC()
				if r := b.last(); r.Failure == nil || *r.Failure != c.want || r.Done || r.Generation != 1 {
					b.Errorf("report %+v, failure %+v; want %+v", r, r.Failure, c.want)
				}
			})
		})
	}
}

// A failure is over when nothing is left to do, and another one counts anew.
func TestFailureOfALookIsOver(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.failAt(engine.StepStart, errTest)
		b.start()
		b.send(wanted(1))
		time.Sleep(unit.PauseFirst) // virtual
		synctest.Wait()
		if f := b.last().Failure; f == nil || f.Attempts < 2 {
			b.Fatalf("failure %+v", f)
		}
		b.onLook(func(context.Context, kurabe.InstanceID) error { return errTest })
		for b.last().Failure.Step != "observe" {
			time.Sleep(unit.PauseFirst / 10) // virtual
			synctest.Wait()
		}
		if f := b.last().Failure; f.Attempts != 1 {
			b.Errorf("another failure is counted as %+v", f)
		}
		b.onLook(nil)
		b.before(nil)
		time.Sleep(unit.PauseFirst) // virtual
		synctest.Wait()
		b.wantServing(1)
		b.onLook(func(context.Context, kurabe.InstanceID) error { return errTest })
		b.send(wanted(1))
		b.onLook(nil)
		time.Sleep(unit.PauseFirst) // virtual
		synctest.Wait()
		b.wantServing(1)
	})
}

// A copy that its source does not let in yet is nothing odd, for a while; any other step is.
func TestFirstTriesOfACopyAreNoWarning(t *testing.T) {
	for attempts, want := range map[int]slog.Level{1: slog.LevelInfo, cloneTries: slog.LevelInfo, cloneTries + 1: slog.LevelWarn} {
		if got := triedAgain(string(engine.StepClone), attempts); got != want {
			t.Errorf("try %d: %v, want %v", attempts, got, want)
		}
		if got := triedAgain(string(engine.StepStart), attempts); got != slog.LevelWarn {
			t.Errorf("try %d of another step: %v", attempts, got)
		}
	}
}
