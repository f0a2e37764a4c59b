package agent

import (
	"context"
	"time"

	"kurabe"
	"kurabe/internal/agent/watch"
	"kurabe/internal/engine"
	"kurabe/internal/logkey"
)

const (
	// holdEvery is how often a standby is told what of the log is kept by now. It holds that
	// much more back: at 100 MB a second of log 500 MB, within the bound of its engine.
	holdEvery = 5 * time.Second
	// holdLimit is for one time: a standby that hangs is somebody else's business.
	holdLimit = 10 * time.Second
	// elsewhereEvery is how often a repository is listed for the log of another host, which
	// pushes once a minute, and elsewhereShare how many times longer that pauses than it takes.
	elsewhereEvery = 20 * time.Second
	elsewhereShare = 50
	elsewhereLimit = time.Minute
)

// holdLog has a standby keep the log that is not kept yet, for the case that it is promoted:
// the run of the log then goes on from there. One that is to hold nothing is told so once.
// Only the worker's goroutine calls it.
func (w *worker) holdLog(ctx context.Context, e engine.Engine, a kurabe.Assignment, o engine.Observation) {
	stands := a.Goal == kurabe.GoalRunning && o.Running && a.Role != nil && a.Role.Duty == kurabe.DutyFollow
	if w.holder != nil && !(stands && a.Log && w.heldBy == o.Process) {
		w.holder()
		w.holder = nil
	}
	switch {
	case stands && a.Log && w.holder == nil:
		held, cancel := context.WithCancel(ctx)
		w.holder, w.heldBy = cancel, o.Process
		w.subscribeHold(held, e, o)
	case stands && !a.Log && w.logDropped != o.Process:
		limited, cancel := context.WithTimeout(ctx, holdLimit)
		defer cancel()
		// All that this can come back with is that it could not be done yet.
		_ = w.upkeep(limited, a, "drop-log", func(ctx context.Context) error {
			err := e.DropLog(ctx, a)
			if err == nil {
				w.logDropped = o.Process
			}
			return err
		})
	}
}

// subscribeHold tells it again and again. What fails is tried again: without it there may be a
// gap, which would be told.
func (w *worker) subscribeHold(ctx context.Context, e engine.Engine, o engine.Observation) {
	var at, before kurabe.LogPosition
	var next time.Time
	watch.Subscribe(ctx, w.process(o, w.hangs), watch.Purpose[engine.LogHolder]{
		Every: holdEvery, Limit: func() time.Duration { return holdLimit },
		Due: func(ctx context.Context) bool {
			a, _ := w.Assignment()
			// One round late: the newest may be what the primary alone has, and the run then goes
			// on from an older place.
			at = before
			if from := sourceHost(a); from == "" || from == a.Host {
				log, _ := w.agent.Logs.Log(w.ID.Owner())
				before = log.Last().Position
			} else if began := w.agent.Now(); !began.Before(next) {
				before = w.keptElsewhere(ctx, before)
				at = before
				next = began.Add(max(elsewhereEvery, elsewhereShare*w.agent.Now().Sub(began)))
			}
			return at.File != ""
		},
		Open: func(ctx context.Context) (engine.LogHolder, error) {
			a, _ := w.Assignment()
			return e.OpenLogHolder(ctx, a)
		},
		Ask:    func(ctx context.Context, s engine.LogHolder) error { return s.Hold(ctx, at) },
		Failed: func(err error) { w.Log.Debug("standby keeps no log for its followers", logkey.Error, err) },
	})
}

// keptElsewhere is up to where the primary's host has brought the log into a repository that
// both read. While that does not answer nothing is let go.
func (w *worker) keptElsewhere(ctx context.Context, before kurabe.LogPosition) kurabe.LogPosition {
	limited, cancel := context.WithTimeout(ctx, elsewhereLimit)
	defer cancel()
	at, there, err := w.agent.Logs.Elsewhere(limited, w.ID.Owner())
	if err != nil || !there {
		return before
	}
	return at
}
