package logstream

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"kurabe"
)

// reserve refuses what would bring the spool above its bounds. It first gives up what
// older runs of the instance have not pushed, oldest first.
func (s *Store) reserve(inst *instance, r *run, bytes int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	fits := func() bool {
		return inst.spoolBytes+bytes <= s.cfg.InstanceBytesMax && s.spoolBytes+bytes <= s.cfg.SpoolBytesMax
	}
	for n := 0; !fits() && n < len(inst.runs) && inst.runs[n] != r; n++ {
		old := inst.runs[n]
		for k, p := range old.pieces {
			if !p.pushed {
				s.dropLocked(inst, old.pieces[k:])
				old.pieces = old.pieces[:k:k]
				if old.ended == joinedWord {
					old.ended = errSpoolFull.Error() // the newer one goes on from nowhere
				}
				break
			}
		}
	}
	if fits() {
		return nil
	}
	return errSpoolFull
}

// whyFull is what people are told of a full spool.
func (s *Store) whyFull(inst *instance) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if inst.pushing != "" {
		return inst.pushing
	}
	return "the server writes its log faster than the repository accepts it"
}

// roomAgain says if a new run may begin: when the spool is half empty, which it gets
// only by the repository's taking pieces.
func (f *follower) roomAgain() bool {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	return f.inst.spoolBytes <= f.s.cfg.InstanceBytesMax/2 && f.s.spoolBytes <= f.s.cfg.SpoolBytesMax/4*3
}

// spoolTrouble says what a failure of the spool means: a gap where bytes cannot be
// kept, else something that may pass while the server holds its log back.
func (f *follower) spoolTrouble(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errSpoolFull):
		return &gapError{reason: fmt.Sprintf("the spool is full: %s", f.s.whyFull(f.inst))}
	case errors.Is(err, syscall.EIO):
		// After a failed sync nobody knows what is on the disk.
		return &gapError{reason: fmt.Sprintf("the spool's disk fails: %v", err)}
	}
	return fmt.Errorf("log spool: %w", err)
}

const (
	pressurePause = 100 * time.Millisecond
	pressureMax   = 30 * time.Second // without one piece pushed
)

// backpressure lets a repository that works catch up, rather than end the run: the
// server holds back what has not been read.
func (f *follower) backpressure(ctx context.Context) error {
	level, since := int64(-1), time.Now()
	for ctx.Err() == nil {
		f.s.mu.Lock()
		bytes, failing, open := f.inst.spoolBytes, f.inst.pushing != "", int64(0)
		if f.open != nil {
			open = f.open.spoolBytes
		}
		f.s.mu.Unlock()
		if bytes <= f.s.cfg.InstanceBytesMax/4*3 || failing || bytes == open {
			return nil
		}
		if bytes < level || level < 0 {
			level, since = bytes, time.Now()
		}
		if time.Since(since) >= pressureMax {
			return nil
		}
		f.trouble(errors.New("waiting for the repository to catch up"))
		wait(ctx, pressurePause)
	}
	return context.Cause(ctx)
}

// release tells the server now and then what it may drop.
func (f *follower) release(ctx context.Context, log Log, to kurabe.LogPosition) error {
	far := to.File != f.released.File || to.Offset-f.released.Offset >= f.s.cfg.PieceBytes
	if to == f.released || !far && time.Since(f.releasedAt) < releaseEvery {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := log.Release(ctx, to); err != nil {
		return fmt.Errorf("release the log before %s: %w", to, err)
	}
	f.released, f.releasedAt = to, time.Now()
	return nil
}

// letGo has the server drop its log while we cannot take it: a full repository must
// not fill the server's disk.
func (f *follower) letGo(ctx context.Context, log Log) error {
	if time.Since(f.releasedAt) < releaseEvery {
		return nil
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	m, err := log.Mark(call)
	if err != nil {
		return fmt.Errorf("mark the log: %w", err)
	}
	return f.release(ctx, log, m.Position)
}
