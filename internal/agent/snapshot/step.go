package snapshot

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"time"

	"kurabe"
	"kurabe/internal/agent/unit"
	"kurabe/internal/faultpoint"
	"kurabe/internal/logkey"
)

// Progress is news at most each progressEvery and from progressStep percent on: a
// copy of an hour writes twenty records.
const (
	progressEvery = time.Second
	progressStep  = 5
)

// progress is how far a step is.
type progress struct {
	mu          sync.Mutex // guards the rest
	done, total int64      // bytes
}

// note is what the step calls, from any goroutine and in any order.
func (p *progress) note(done, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done, p.total = max(p.done, done), total
}

// facts are what is known of a snapshot in the making. All bytes copied is not yet
// a durable snapshot: that alone is 100 %.
func (p *progress) facts() kurabe.SnapshotFacts {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := kurabe.SnapshotFacts{SizeBytes: p.total}
	if p.total > 0 {
		f.Percent = int(min(p.done*100/p.total, 99))
	}
	return f
}

// step does one step and reports its progress. The deed has its own goroutine, which
// ends before step does.
func (u *worker) step(ctx context.Context, a kurabe.SnapshotAssignment, step string) error {
	began := u.set.Host.Now()
	stepCtx, end, err := u.Cuttable(ctx, a)
	if err != nil {
		return err
	}
	defer end()
	var p progress
	done := make(chan error, 1)
	go func() { done <- u.do(stepCtx, a, step, p.note) }()
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if step == stepVerifySnapshot {
				u.verifyGoesOn(ctx, a, &p)
				continue
			}
			if step == stepSealSnapshot || step == stepArchiveSnapshot {
				continue // it is whole already, and was reported so
			}
			u.report(ctx, kurabe.SnapshotReport{Generation: a.Generation, Facts: p.facts()})
			continue
		case err := <-done:
			cause := context.Cause(stepCtx)
			switch {
			case err == nil:
				u.Log.Info("step done", logkey.Step, step, logkey.Generation, a.Generation, logkey.DurationMS, u.set.Host.Now().Sub(began).Milliseconds())
				// A streak of failures ends when the step itself succeeds.
				if u.Failure != nil && u.Failure.Step == step {
					u.Failure = nil
				}
			case errors.Is(cause, unit.ErrCut), errors.Is(cause, errSourceGone):
				err = cause
			}
			return err
		}
	}
}

// do waits for its turn and acts.
func (u *worker) do(ctx context.Context, a kurabe.SnapshotAssignment, step string, progress func(done, total int64)) error {
	leave, err := u.enter(ctx, a, step)
	if err != nil {
		return err
	}
	defer leave()
	faultpoint.Reach("before", step)
	switch step {
	case stepTakeSnapshot:
		err = u.take(ctx, a, progress)
	case stepCopySnapshot:
		_, err = u.set.Folders.Copy(ctx, a, progress)
	case stepSealSnapshot:
		err = u.set.Folders.Seal(ctx, u.ID)
	case stepArchiveSnapshot:
		err = u.set.Folders.Archive(ctx, u.ID, progress)
	case stepVerifySnapshot:
		err = u.verify(ctx, a, progress)
	case stepRemoveSnapshot:
		err = u.set.Folders.Remove(ctx, u.ID)
	}
	faultpoint.Reach("after", step)
	return err
}

// enter waits until nobody else works on the same files, and for a slot. A removal
// frees a disk and does not wait for slots. An upload may take a day: it only reads,
// so it waits for other uploads alone, and keeps neither a copy nor a take waiting.
func (u *worker) enter(ctx context.Context, a kurabe.SnapshotAssignment, step string) (leave func(), err error) {
	s := u.set
	if step == stepArchiveSnapshot || step == stepVerifySnapshot {
		return s.Host.Lines.Enter(ctx, step)
	}
	thing := string(u.ID)
	switch step {
	case stepTakeSnapshot:
		thing = string(a.Of)
	case stepCopySnapshot:
		thing = string(a.From)
	}
	next, err := s.Host.Lines.Enter(ctx, thing)
	if err != nil || step == stepRemoveSnapshot {
		return next, err
	}
	if step == stepSealSnapshot {
		// It only reads, one at a time: a snapshot that somebody waits for goes first.
		leave, err := s.Host.Lines.Enter(ctx, step)
		if err != nil {
			next()
			return nil, err
		}
		return func() { leave(); next() }, nil
	}
	select {
	case s.slots <- struct{}{}:
		return func() { <-s.slots; next() }, nil
	case <-ctx.Done():
		next()
		return nil, context.Cause(ctx)
	}
}

// report tells the planner what is seen.
func (u *worker) report(ctx context.Context, r kurabe.SnapshotReport) {
	r.Host, r.Snapshot, r.Failure = u.set.Host.ID, u.ID, u.Failure
	if !r.Absent {
		r.Verified, r.Verifying = u.result(), u.verifying
	}
	u.Tell(ctx, r)
}

func (u *worker) SameNews(a, b kurabe.SnapshotReport) bool {
	if moved := b.Facts.Percent - a.Facts.Percent; a.Done == b.Done && moved < progressStep && moved > -progressStep && !b.Done {
		b.Facts = a.Facts
	}
	b.Failure = unit.AsBefore(a.Failure, b.Failure)
	return reflect.DeepEqual(a, b)
}
