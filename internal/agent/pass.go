package agent

import (
	"context"
	"errors"
	"time"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/faultpoint"
	"kurabe/internal/logkey"
)

// pass does steps until nothing is left to do or one fails, and returns when to
// look again.
func (w *worker) pass(ctx context.Context) time.Duration {
	for ctx.Err() == nil {
		a, known := w.assignment()
		if !known {
			w.unknown(ctx)
			return w.retryReport(w.agent.Look)
		}
		w.began = true
		if w.retryGen != a.Generation {
			// A new assignment may be the cure. Told beside the new generation, the old
			// failure would be taken for its own.
			w.failure, w.retryAt = nil, time.Time{}
		}
		// The end of a server that could not start wakes the worker too: only a new
		// assignment may cut the pause short.
		if rest := w.retryAt.Sub(w.agent.Now()); rest > 0 {
			w.resend(ctx)
			return w.retryReport(rest)
		}
		e, ok := w.agent.Engines[a.Engine]
		if !ok {
			return w.failed(ctx, a, engine.Observation{}, "find-engine", errors.New("engine "+string(a.Engine)+" is not offered by this host"))
		}
		o, err := e.Observe(ctx, a)
		if err != nil {
			if ctx.Err() != nil {
				return 0
			}
			return w.failed(ctx, a, o, "observe", err)
		}
		w.watch(ctx, o)
		w.keepLog(ctx, a, o)
		steps := e.Steps(a, o)
		if len(steps) == 0 {
			return w.satisfied(ctx, a, o)
		}
		if pause := w.crashPause(steps[0].Name, o); pause > 0 {
			w.report(ctx, a, o, string(steps[0].Name), false)
			return w.retryReport(pause)
		}
		w.report(ctx, a, o, string(steps[0].Name), false)
		if err := w.step(ctx, a, steps[0]); err != nil {
			if ctx.Err() != nil {
				return 0
			}
			if errors.Is(err, errCut) {
				continue
			}
			return w.failed(ctx, a, o, string(steps[0].Name), err)
		}
		// A server that starts and then does not come up fails at a later step each
		// time: the streak ends only when that step itself succeeds.
		if w.failure != nil && w.failure.Step == string(steps[0].Name) {
			w.failure = nil
		}
	}
	return 0
}

// errCut says that a newer assignment ended the step.
var errCut = errors.New("cut short by a newer assignment")

// step does one step.
func (w *worker) step(ctx context.Context, a kurabe.Assignment, s engine.Step) error {
	began := w.agent.Now()
	stepCtx, cut := context.WithCancelCause(ctx)
	w.mu.Lock()
	if w.have.Generation != a.Generation {
		w.mu.Unlock()
		cut(nil)
		return errCut
	}
	w.cut = func() { cut(errCut) }
	w.mu.Unlock()
	faultpoint.Reach("before", string(s.Name))
	err := s.Do(stepCtx)
	faultpoint.Reach("after", string(s.Name))
	w.mu.Lock()
	w.cut = nil
	w.mu.Unlock()
	if err != nil && context.Cause(stepCtx) == errCut {
		err = errCut
	}
	cut(nil)
	if err == nil {
		w.log.Info("step done", logkey.Step, s.Name, logkey.Generation, a.Generation, logkey.DurationMS, w.agent.Now().Sub(began).Milliseconds())
	}
	return err
}

// satisfied: the assignment is true.
func (w *worker) satisfied(ctx context.Context, a kurabe.Assignment, o engine.Observation) time.Duration {
	w.failure = nil
	if a.Goal == kurabe.GoalAbsent {
		w.report(ctx, a, o, "", true)
		if err := w.agent.forget(a.Instance); err != nil {
			return w.failed(ctx, a, o, "forget-assignment", err)
		}
		return w.retryReport(w.agent.Look)
	}
	if t, ok := w.agent.Engines[a.Engine].(tidier); ok {
		if err := t.Tidy(ctx, a); err != nil && ctx.Err() == nil {
			w.log.Warn("logs not tidied", logkey.Error, err)
		}
	}
	w.measure(a)
	w.report(ctx, a, o, "", true)
	return w.retryReport(w.agent.Look)
}

// tidier is an engine that keeps its logs in bounds.
type tidier interface {
	Tidy(ctx context.Context, a kurabe.Assignment) error
}
