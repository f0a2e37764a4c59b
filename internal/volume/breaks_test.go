package volume

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"
)

// TestBreaks: of the time that passes, one part in share is work.
func TestBreaks(t *testing.T) {
	now := time.Unix(0, 0)
	var rested time.Duration
	b := &breaks{share: 20, now: func() time.Time { return now }, sleep: func(d time.Duration) error {
		rested += d
		now = now.Add(d)
		return nil
	}, began: now}
	var worked time.Duration
	for n := range 1000 {
		work := time.Duration(n%7) * time.Millisecond
		worked += work
		now = now.Add(work)
		if err := b.step(); err != nil {
			t.Fatal(err)
		}
		if behind := worked*19 - rested; behind >= workStretch*19 {
			t.Fatalf("%v of work have %v of rest", worked, rested)
		}
	}
	if err := b.rest(); err != nil || rested != worked*19 {
		t.Errorf("%v of work had %v of rest, %v", worked, rested, err)
	}
	b.sleep = func(time.Duration) error { return errors.New("ended") }
	now = now.Add(workStretch)
	if err := b.step(); err == nil {
		t.Error("an end is not noticed")
	}
}

func TestOwnBytesSlowly(t *testing.T) {
	dir := t.TempDir()
	for n := range 20 {
		write(t, filepath.Join(dir, fmt.Sprint(n)), "content", 0o600)
	}
	want, err := OwnBytes(dir)
	if err != nil || want == 0 {
		t.Fatalf("%d bytes, %v", want, err)
	}
	if got, err := OwnBytesSlowly(t.Context(), dir, 2); err != nil || got != want {
		t.Errorf("%d bytes, %v; want %d", got, err, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := OwnBytesSlowly(ctx, dir, 1000); !errors.Is(err, context.Canceled) {
		t.Errorf("after its end: %v", err)
	}
}
