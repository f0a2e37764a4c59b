package harness

import (
	"testing"
	"time"
)

// lookEvery is how often a condition that nothing announces is looked at.
const lookEvery = 20 * time.Millisecond

// Wait looks until what answers "" or the time is up; then the test fails with
// the last answer, which says what is still missing.
func Wait(t testing.TB, within time.Duration, what string, missing func() string) time.Duration {
	t.Helper()
	start := time.Now()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		last := missing()
		if last == "" {
			return time.Since(start)
		}
		if time.Since(start) > within {
			t.Fatalf("%s: not within %v: %s", what, within, last)
		}
		<-tick.C
	}
}

// After waits for a moment that was chosen by chance. It is for faults, which
// come at a time and not on a condition.
func After(t testing.TB, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}
