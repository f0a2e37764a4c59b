package agent

import (
	"context"
	"errors"
	"time"

	"kurabe"
	"kurabe/internal/agent/unit"
	"kurabe/internal/engine"
	"kurabe/internal/faultpoint"
	"kurabe/internal/logkey"
)

// Pass does one step, unless nothing is left to do or one failed a moment ago.
func (w *worker) Pass(ctx context.Context, a kurabe.Assignment) time.Duration {
	w.keepLease(ctx, a)
	if rest := w.Rest(); rest > 0 {
		w.watchDuringPause(ctx, a)
		w.reserveAgain(ctx, a)
		return w.RetryReport(rest)
	}
	// Before anything that could listen.
	if err := w.filter(a); err != nil {
		return w.failed(ctx, a, engine.Observation{}, "filter-packets", err)
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
	if err := w.needAddresses(a, o); err != nil {
		return w.failed(ctx, a, o, "hold-address", err)
	}
	w.observeRole(ctx, a, &o)
	w.agent.endpoints.Takes(w.ID, a.Generation, w.servesClients(a, o), o.PID)
	w.keepLog(ctx, a, o)
	steps := w.withoutForbidden(a, o, e.Steps(a, o))
	w.keepReserved(a, o, takesAddress(steps))
	if len(steps) == 0 {
		return w.satisfied(ctx, a, o)
	}
	if pause := w.crashPause(a, steps); pause > 0 {
		w.report(ctx, a, o, string(steps[0].Name), false)
		return w.RetryReport(pause)
	}
	w.report(ctx, a, o, string(steps[0].Name), false)
	if err := w.step(ctx, a, steps[0]); err != nil {
		if ctx.Err() != nil || errors.Is(err, unit.ErrCut) {
			return 0
		}
		return w.failed(ctx, a, o, string(steps[0].Name), err)
	}
	// A server that starts and then does not come up fails at a later step each
	// time: the streak ends only when that step itself succeeds.
	if w.Failure != nil && w.Failure.Step == string(steps[0].Name) {
		w.Failure = nil
	}
	return 0
}

// needAddresses holds what the server listens at. One that is to go has its own until
// nothing of it is left.
func (w *worker) needAddresses(a kurabe.Assignment, o engine.Observation) error {
	if a.Goal == kurabe.GoalAbsent {
		return nil
	}
	return w.agent.endpoints.Addresses.Need(a, w.mayHoldEndpoint(a, o.Running))
}

// withoutForbidden removes the steps that a primary without a lease may not take. It ends a
// primary that hangs, since it might answer again after its replacement, and one whose lease has
// ended: it was started while nobody guarded it.
func (w *worker) withoutForbidden(a kurabe.Assignment, o engine.Observation, steps []engine.Step) []engine.Step {
	if a.Role == nil || !a.Role.Leased {
		return steps
	}
	if o.Running && (w.hangs() || w.lease != nil && w.lease.hasEnded()) {
		fence := func(ctx context.Context) error { return w.agent.Engines[a.Engine].Fence(ctx, a) }
		return []engine.Step{{Name: engine.StepFence, Do: fence}}
	}
	if !o.Running && !w.leased(a) {
		for n, s := range steps {
			if s.Name == engine.StepStart {
				return steps[:n]
			}
		}
	}
	return steps
}

// longStep is after which time a step is told of before its end: it waits for something, a
// recovery for example.
const longStep = 10 * time.Second

// step does one step.
func (w *worker) step(ctx context.Context, a kurabe.Assignment, s engine.Step) error {
	began := w.agent.Now()
	long := time.AfterFunc(longStep, func() {
		w.Log.Warn("step not finished yet", logkey.Step, s.Name, logkey.Generation, a.Generation, logkey.DurationMS, w.agent.Now().Sub(began).Milliseconds())
	})
	defer long.Stop()
	err := w.runStep(ctx, a, string(s.Name), func(ctx context.Context) error {
		if s.Name == engine.StepRemoveHome {
			if err := w.agent.exports.finish(a); err != nil {
				w.Log.Warn("end of the logs not exported", logkey.Error, err)
			}
		}
		faultpoint.Reach("before", string(s.Name))
		err := s.Do(ctx)
		faultpoint.Reach("after", string(s.Name))
		return err
	})
	if err == nil {
		w.Log.Info("step done", logkey.Step, s.Name, logkey.Generation, a.Generation, logkey.DurationMS, w.agent.Now().Sub(began).Milliseconds())
		if w.role != nil {
			w.role.poke() // it may be another server by now
		}
	}
	return err
}

// satisfied: no step is left, so the assignment is true, or waits for others.
func (w *worker) satisfied(ctx context.Context, a kurabe.Assignment, o engine.Observation) time.Duration {
	w.Failure = nil
	if a.Goal == kurabe.GoalAbsent {
		if err := w.agent.endpoints.Addresses.Need(a, false); err != nil {
			return w.failed(ctx, a, o, "give-address-up", err)
		}
		w.unfilter()
		w.report(ctx, a, o, "", true)
		if err := w.agent.forget(a.Instance); err != nil {
			return w.failed(ctx, a, o, "forget-assignment", err)
		}
		return w.RetryReport(w.agent.Look)
	}
	step, done := w.awaits(a, o)
	if a.Role != nil {
		// Before anything that takes its time: another server may wait for this.
		w.noteLackOfRoom()
		w.report(ctx, a, o, step, done)
	}
	w.tidy(ctx, a)
	w.measure(a)
	w.reportNowOr(ctx, a, o, step, done)
	return w.RetryReport(w.agent.Look)
}

func (w *worker) tidy(ctx context.Context, a kurabe.Assignment) {
	if !w.answers() {
		return
	}
	err := w.upkeep(ctx, a, "tidy", func(ctx context.Context) error {
		return w.agent.Engines[a.Engine].Tidy(ctx, a, w.agent.exports.unread(a.Instance))
	})
	if err != nil && ctx.Err() == nil && !errors.Is(err, unit.ErrCut) {
		w.Log.Warn("old logs not removed", logkey.Error, err)
	}
}
