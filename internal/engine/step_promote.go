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
// than what a primary has: to start again costs more where a lot of log is to be applied, and a
// busy machine is slow to let somebody in.
const promoteAnswer = 5 * time.Second

// promote makes the running follower a primary. All that it did before as one is noted to be
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
	if err := l.restartHanging(ctx, i, r); err != nil {
		return fmt.Errorf("promote %s: %w", i.Instance, err)
	}
	if err := r.Promote(ctx, i); err != nil {
		return fmt.Errorf("promote %s: %w", i.Instance, err)
	}
	return nil
}

// restartHanging ends a follower that hangs and is to be promoted. It has every commit and nobody
// else may write, so it loses nothing of its data by a restart, after which it can be promoted. A
// follower that is about to answer says so at once.
func (l *Lifecycle) restartHanging(ctx context.Context, i Instance, r Replicator) error {
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

// lastWordTime bounds the question of when the primary before this one heard this one last.
const lastWordTime = time.Second

// awaitOldLease waits until the lease has ended that this follower may have given the primary
// before it. Nobody can ask whether it did, since the follower has detached.
func (l *Lifecycle) awaitOldLease(ctx context.Context, i Instance) error {
	timer := time.NewTimer(l.oldLeaseLeft(ctx, i))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
	}
	return note(i.Home, func(a *Applied) { a.OldLeaseAwaited = i.Role.Epoch })
}

// oldLeaseLeft is the remaining part of kurabe.OldLeaseWait, in full and from now on when the time
// of that lease is not known.
func (l *Lifecycle) oldLeaseLeft(ctx context.Context, i Instance) time.Duration {
	began := proc.Boottime()
	ctx, cancel := context.WithTimeout(ctx, lastWordTime)
	defer cancel()
	at, err := l.c.Driver.LastWord(ctx, i)
	if err != nil || at <= 0 {
		at = began
	}
	return leaseWaitLeft(at, proc.Boottime())
}

// leaseWaitLeft is the part of kurabe.OldLeaseWait that is left after a moment, at most all of it.
func leaseWaitLeft(at, now int64) time.Duration {
	return min(max(0, kurabe.OldLeaseWait-time.Duration(now-at)), kurabe.OldLeaseWait)
}
