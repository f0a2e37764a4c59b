package agent

import (
	"context"
	"time"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/logkey"
)

// saveRetry is how soon an assignment that could not be saved, or a report that
// could not be dropped, is tried again. Nothing announces that a disk has room.
const saveRetry = 2 * time.Second

// accept saves an assignment and puts it in force. One that cannot be saved is
// not obeyed: an order that a restart would forget is no order. It waits in the
// worker, which reports why and tries again.
func (w *worker) accept(a kurabe.Assignment) error {
	w.saving.Lock()
	defer w.saving.Unlock()
	if err := w.agent.save(a); err != nil {
		w.refuse(a, err)
		return err
	}
	w.give(a)
	return nil
}

// acceptAgain tries to save what could not be saved.
func (w *worker) acceptAgain() {
	w.saving.Lock()
	defer w.saving.Unlock()
	a, waits := w.unsaved()
	if !waits {
		return
	}
	if err := w.agent.save(a); err != nil {
		w.refuse(a, err)
		return
	}
	w.log.Info("assignment saved at last", logkey.Generation, a.Generation)
	w.give(a)
}

// refuse notes why an assignment is not in force.
func (w *worker) refuse(a kurabe.Assignment, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	attempts := 1
	if w.refused != nil {
		attempts = w.refused.Attempts + 1
	}
	w.refused = &kurabe.Failure{Kind: kurabe.FailureStorage, Step: "save-assignment", Message: err.Error(), Attempts: attempts, At: w.agent.Now().UTC()}
	w.waiting = a
}

// unsaved is the assignment that could not be saved, if there is one.
func (w *worker) unsaved() (kurabe.Assignment, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waiting, w.refused != nil
}

// newest is the highest generation that was taken: one that waits to be saved, or
// the one in force. A lower one must not slip in while the higher one waits.
func (w *worker) newest() (kurabe.Assignment, bool) {
	if a, waits := w.unsaved(); waits {
		return a, true
	}
	return w.assignment()
}

// unknown is a pass without an assignment in force: the first one may wait to be
// saved, and the user is told why nothing happens.
func (w *worker) unknown(ctx context.Context) {
	if a, waits := w.unsaved(); waits {
		w.report(ctx, a, engine.Observation{}, "", false)
	}
}

// leave ends the worker of an instance whose records are gone: nothing of it
// stays on disk or in the store. Only this goroutine reports, so no report can
// follow the removal.
func (w *worker) leave(ctx context.Context) {
	for {
		err := w.agent.forget(w.id)
		if err == nil {
			err = w.agent.Link.DropReport(ctx, w.agent.Host, w.id)
		}
		if err == nil || ctx.Err() != nil {
			break
		}
		w.log.Warn("report not dropped", logkey.Error, err)
		timer := time.NewTimer(saveRetry)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
	w.agent.mu.Lock()
	defer w.agent.mu.Unlock()
	if w.agent.workers[w.id] == w {
		delete(w.agent.workers, w.id)
	}
}
