package engine

import (
	"context"
	"time"

	"kurabe"
	"kurabe/internal/proc"
)

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
