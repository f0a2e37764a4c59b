package engine

import (
	"context"
	"errors"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/proc"
)

// outlaster is a driver that knows, or not, when its server gave its last word.
type outlaster struct {
	stub
	at  int64 // 0: it does not know
	err error
}

func (o *outlaster) LastWord(context.Context, Instance) (int64, error) { return o.at, o.err }

func TestOutlastRest(t *testing.T) {
	// The word of a moment ago is given before the machine's start where that was a moment ago.
	now := proc.Boottime()
	halfAgo := max(1, now-int64(kurabe.OldLeaseWait/2))
	for name, c := range map[string]struct {
		driver      Driver
		least, most time.Duration
	}{
		"it does not know":            {&outlaster{}, kurabe.OldLeaseWait / 2, kurabe.OldLeaseWait},
		"it does not answer":          {&outlaster{at: 1, err: errors.New("no")}, kurabe.OldLeaseWait / 2, kurabe.OldLeaseWait},
		"the word is of the start":    {&outlaster{at: 1}, 0, leaseWaitLeft(1, now)},
		"the word is of a moment ago": {&outlaster{at: halfAgo}, 0, leaseWaitLeft(halfAgo, now)},
	} {
		l := &Lifecycle{c: Config{Driver: c.driver}}
		if got := l.oldLeaseLeft(t.Context(), Instance{}); got < c.least || got > c.most {
			t.Errorf("%s: waits for %v, want %v to %v", name, got, c.least, c.most)
		}
	}
}

func TestRestOf(t *testing.T) {
	const now = int64(time.Hour)
	for name, c := range map[string]struct {
		ago, want time.Duration
	}{
		"a moment that is to come": {-time.Hour, kurabe.OldLeaseWait},
		"now":                      {0, kurabe.OldLeaseWait},
		"a moment ago":             {kurabe.OldLeaseWait / 2, kurabe.OldLeaseWait / 2},
		"as long ago as it takes":  {kurabe.OldLeaseWait, 0},
		"long ago":                 {time.Hour - 1, 0},
	} {
		if got := leaseWaitLeft(now-int64(c.ago), now); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
