package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"kurabe"
	"kurabe/internal/proc"
)

// promoteAnswer is how long a follower that is to write may take to answer at all. It is longer
// than what a writer has: to start again costs more where a lot of log is to be applied, and a
// busy machine is slow to let somebody in.
const promoteAnswer = 5 * time.Second

// promote makes the running follower a writer. All that it did before as one is noted to be
// done again first: once it is promoted, nothing shows that this is still to be done.
func (l *Lifecycle) promote(ctx context.Context, i Instance, r Replicator) error {
	err := note(i.Home, func(a *Applied) {
		a.PasswordSeq, a.Ready, a.Probed = 0, false, false
		a.ClientsKeptOut = a.ClientsKeptOut || holdsPromoted(*i.Role)
	})
	if err != nil {
		return err
	}
	i.ClientsKeptOut = i.ClientsKeptOut || holdsPromoted(*i.Role)
	if err := l.rouse(ctx, i, r); err != nil {
		return fmt.Errorf("promote %s: %w", i.Instance, err)
	}
	if err := r.Promote(ctx, i); err != nil {
		return fmt.Errorf("promote %s: %w", i.Instance, err)
	}
	return nil
}

// rouse ends a follower that hangs. It was chosen before anybody knew, has every commit, and
// nobody else may write any more: started again it can be promoted, and nothing that it has on
// disk is lost by that. One that is about to come up says so at once.
func (l *Lifecycle) rouse(ctx context.Context, i Instance, r Replicator) error {
	limited, cancel := context.WithTimeout(ctx, promoteAnswer)
	defer cancel()
	w, err := r.OpenWatch(limited, i)
	if err == nil {
		w.Close()
		return nil
	}
	late := limited.Err() != nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
	if errors.Is(err, ErrNotReady) || !late || ctx.Err() != nil {
		return nil // the promotion says what is wrong
	}
	if err := l.fence(ctx, i); err != nil {
		return err
	}
	return fmt.Errorf("it has not answered within %v, and is started again", promoteAnswer)
}

// lastWordTime bounds the question of when the writer before this one heard this one last.
const lastWordTime = time.Second

// outlast waits for as long as the writer before this one may serve by this one's own word,
// which nobody hears: it follows that one no more.
func (l *Lifecycle) outlast(ctx context.Context, i Instance) error {
	timer := time.NewTimer(l.outlastRest(ctx, i))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
	}
	return note(i.Home, func(a *Applied) { a.OldLeaseAwaited = i.Role.Epoch })
}

// outlastRest is what is left to wait of kurabe.OldLeaseWait: all of it, counted from now, when
// nobody knows when that word was given.
func (l *Lifecycle) outlastRest(ctx context.Context, i Instance) time.Duration {
	began := proc.Boottime()
	ctx, cancel := context.WithTimeout(ctx, lastWordTime)
	defer cancel()
	at, err := l.c.Driver.LastWord(ctx, i)
	if err != nil || at <= 0 {
		at = began
	}
	return restOf(at, proc.Boottime())
}

// restOf is how much of kurabe.OldLeaseWait is left after a moment, at most all of it.
func restOf(at, now int64) time.Duration {
	return min(max(0, kurabe.OldLeaseWait-time.Duration(now-at)), kurabe.OldLeaseWait)
}
