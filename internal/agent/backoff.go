package agent

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"kurabe"
	"kurabe/internal/agent/unit"
	"kurabe/internal/engine"
	"kurabe/internal/logkey"
)

// forGood is longer than a service runs.
const forGood = 10 * 365 * 24 * time.Hour

// A server that crashes again within crashCalm is restarted with the same
// growing pauses, so that it does not spin.
const crashCalm = time.Minute

// pauseMostGroup is the longest of these pauses for a server of a group: without it the
// others have no standby, or no primary.
const pauseMostGroup = 2 * time.Second

// failed notes a failed step and returns when to try again.
func (w *worker) failed(ctx context.Context, a kurabe.Assignment, o engine.Observation, step string, err error) time.Duration {
	kind, message := kurabe.FailureOther, err.Error()
	var start *engine.StartError
	if errors.As(err, &start) {
		kind, message = start.Kind, start.Message
	}
	var lost *engine.RestoreError
	if errors.As(err, &lost) {
		kind = lost.Kind
	}
	if errors.Is(err, engine.ErrHeld) {
		kind = kurabe.FailureLocked
	}
	attempts := w.Fails(kind, step, message)
	w.Log.Log(ctx, triedAgain(step, attempts), "step failed, retrying", logkey.Step, step, logkey.Generation, a.Generation, "attempts", attempts, logkey.Error, err)
	w.reportNowOr(ctx, a, o, step, false)
	pause := unit.Backoff(attempts - 1)
	if w.Failure.Final() {
		// Each try would read all of a backup to find the same. What makes it worth
		// another is a person's doing: a new assignment, or a restart of the service.
		w.Log.Error("step failed, giving up", logkey.Step, step, logkey.Generation, a.Generation, logkey.Error, err)
		pause = forGood
	}
	return w.RestFor(pause)
}

// cloneTries is how often a copy may be refused before that is odd: its source is told to let
// it in when it is told to ask, and may take a second or two to have done so.
const cloneTries = 3

// triedAgain is how odd a failed step is.
func triedAgain(step string, attempts int) slog.Level {
	if step == string(engine.StepClone) && attempts <= cloneTries {
		return slog.LevelInfo
	}
	return slog.LevelWarn
}

// crashPause says how long to hold back a restart: not at all after the first
// crash, longer with each one that follows soon.
func (w *worker) crashPause(a kurabe.Assignment, steps []engine.Step) time.Duration {
	now := w.agent.Now()
	if a.Role != nil && steps[0].Name == engine.StepStart {
		return max(0, w.startAt.Sub(now))
	}
	if steps[0].Name != engine.StepNoteCrash {
		return 0
	}
	if now.Sub(w.crashed) > crashCalm {
		w.crashes = 0
	}
	most := unit.PauseMost
	if a.Role != nil {
		most = pauseMostGroup
	}
	if w.crashes > 0 {
		until := w.crashed.Add(min(unit.PauseFirst<<min(w.crashes, 10), most))
		switch {
		case a.Role != nil && !starts(steps):
			// It waits for an order: that it died is noted and told at once, and what is
			// held back is the start that will be ordered.
			w.startAt = until
		case now.Before(until):
			return until.Sub(now)
		}
	}
	w.crashes++
	w.crashed = now
	return 0
}

// starts says whether the server is to be started.
func starts(steps []engine.Step) bool {
	return slices.ContainsFunc(steps, func(s engine.Step) bool { return s.Name == engine.StepStart })
}
