package unit

import (
	"context"
	"math/rand/v2"
	"time"

	"kurabe"
)

// Pauses after a failed step: the second try comes at once, then they double
// from the first to the most.
const (
	PauseFirst = 500 * time.Millisecond
	PauseMost  = 30 * time.Second
)

// failedAgain counts the attempts of a step. One that was held by clients was not in the way
// of itself, and begins anew.
func failedAgain(before *kurabe.Failure, now kurabe.Failure) *kurabe.Failure {
	now.Attempts, now.Since = 1, now.At
	if before != nil && before.Step == now.Step && (before.Kind == kurabe.FailureLocked) == (now.Kind == kurabe.FailureLocked) {
		now.Attempts, now.Since = before.Attempts+1, before.Since
	}
	return &now
}

// Backoff is the pause before try n+1, with jitter so that many instances do
// not act as one.
func Backoff(n int) time.Duration {
	if n <= 0 {
		return PauseFirst / 5
	}
	pause := PauseFirst << min(n-1, 10)
	pause = min(pause, PauseMost)
	return pause/2 + rand.N(pause/2)
}

// Wait waits for d, and says whether ctx lasts.
func Wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
	return ctx.Err() == nil
}
