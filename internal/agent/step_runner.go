package agent

import (
	"context"

	"kurabe"
	"kurabe/internal/agent/unit"
	"kurabe/internal/engine"
)

// runStep does what may take its time and is ended by a newer assignment.
func (w *worker) runStep(ctx context.Context, a kurabe.Assignment, step string, do func(context.Context) error) error {
	limited, end, err := w.Cuttable(ctx, a)
	if err != nil {
		return err
	}
	defer end()
	err = w.awaitAndReport(ctx, a, step, func() error { return do(limited) })
	if err != nil && context.Cause(limited) == unit.ErrCut {
		err = unit.ErrCut
	}
	return err
}

// upkeep is runStep for what is no step. A server without a group is waited for as ever:
// nobody is about to take its place.
func (w *worker) upkeep(ctx context.Context, a kurabe.Assignment, what string, do func(context.Context) error) error {
	if a.Role == nil {
		return do(ctx)
	}
	return w.runStep(ctx, a, what, do)
}

// awaitAndReport waits for the end of a deed. Of a server of a group it tells meanwhile what
// there is to tell: that it died, hangs or writes does not wait for a step to be done.
func (w *worker) awaitAndReport(ctx context.Context, a kurabe.Assignment, step string, do func() error) error {
	if a.Role == nil {
		return do()
	}
	done := make(chan error, 1)
	go func() { done <- do() }()
	for {
		select {
		case err := <-done:
			return err
		case <-w.news:
			w.reportNow(ctx, a, step, true)
		}
	}
}

// watchDuringPause is the work in the pause before a failed step is tried again.
func (w *worker) watchDuringPause(ctx context.Context, a kurabe.Assignment) {
	if a.Role != nil && w.Failure != nil {
		w.reportNow(ctx, a, w.Failure.Step, false)
	}
	w.Resend(ctx)
}

// reportNowOr reports a new observation of a server of a group, and the given one of any other
// server: no state in between is reported of those.
func (w *worker) reportNowOr(ctx context.Context, a kurabe.Assignment, o engine.Observation, step string, done bool) {
	if a.Role == nil || !w.reportNow(ctx, a, step, false) {
		w.report(ctx, a, o, step, done)
	}
}

// reportNow observes and reports only; under says that the step is under way. It returns false
// when it could not observe.
func (w *worker) reportNow(ctx context.Context, a kurabe.Assignment, step string, under bool) bool {
	e, ok := w.agent.Engines[a.Engine]
	if !ok {
		return false
	}
	o, err := e.Observe(ctx, a)
	if err != nil {
		return false
	}
	w.observeRole(ctx, a, &o)
	name := engine.StepName(step)
	if !under || name != engine.StepRelease { // at whose beginning nobody is let in yet
		w.agent.endpoints.Takes(w.ID, a.Generation, w.servesClients(a, o), o.PID)
	}
	if under && endsServer[name] && !o.Running {
		// Half of the truth: that it has ended would be told without that it was to, and
		// how. The step comes to its end right now.
		return true
	}
	done := false
	if len(e.Steps(a, o)) == 0 {
		step, done = w.awaits(a, o)
	}
	w.report(ctx, a, o, step, done)
	return true
}

// endsServer are the steps after which a server does not run.
var endsServer = map[engine.StepName]bool{engine.StepStop: true, engine.StepKill: true, engine.StepFence: true, engine.StepStepDown: true}

// What a server of a group without a step left waits for.
const (
	awaitsOrder    = "await-order"    // to be started, though another may take its place
	awaitsSource   = "await-source"   // whose log does not come in
	awaitsFollower = "await-follower" // which lacks what clients would see
	awaitsAnswer   = "await-answer"   // of the server itself, which hangs
)

// isAwaited says whether a step of a report is none that is being done.
func isAwaited(step string) bool {
	return step == awaitsOrder || step == awaitsSource || step == awaitsFollower || step == awaitsAnswer
}

// awaits says whether an assignment without a step left is true, and if not, for what it
// waits.
func (w *worker) awaits(a kurabe.Assignment, o engine.Observation) (step string, done bool) {
	r := w.roleReport(a, o)
	switch {
	case r != nil && r.Unresponsive:
		return awaitsAnswer, false
	case engine.Done(a, o):
		return "", true
	case a.Role.Duty == kurabe.DutyFollow:
		return awaitsSource, false
	case o.Running:
		return awaitsFollower, false
	}
	return awaitsOrder, false
}
