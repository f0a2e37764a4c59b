package proc

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"time"
)

// A suspended server does nothing, nor does any process in its folder; a process elsewhere
// is left alone. Resumed, all go on.
func TestSuspend(t *testing.T) {
	b, apart := newBed(t), newBed(t)
	// Children that come and go, as those of a server do.
	p := b.start(t, "/bin/sh", "-c", "sleep 60 & while :; do sleep 0.01; done")
	bystander := apart.start(t, "/bin/sleep", "60")
	eventually(t, "the server has children", func() bool {
		found, err := Survivors(b.data)
		return err == nil && len(found) > 1
	})
	if err := Suspend(deadline(t), p, b.data); err != nil {
		t.Fatal(err)
	}
	before, err := Survivors(b.data)
	if err != nil || len(before) < 2 {
		t.Fatalf("%v, %v", before, err)
	}
	for _, pid := range before {
		if !suspended(pid) {
			t.Errorf("%d moves", pid)
		}
	}
	if suspended(bystander.PID) {
		t.Error("a process in another folder is stopped")
	}
	if err := Resume(b.data); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the server makes children again", func() bool {
		now, err := Survivors(b.data)
		return err == nil && !suspended(p.PID) && slices.ContainsFunc(now, func(pid int) bool { return !slices.Contains(before, pid) })
	})
}

func TestSuspendOneThatIsGone(t *testing.T) {
	b := newBed(t)
	p := b.start(t, "/bin/true")
	wait(t, p)
	if err := Suspend(deadline(t), p, b.data); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("%v", err)
	}
}

// A process is adopted by pid and start time together.
func TestAdopt(t *testing.T) {
	self, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	p, found, err := Adopt(self.PID, self.StartTime)
	if err != nil || !found || p.PID != os.Getpid() {
		t.Fatalf("%+v, %v, %v", p, found, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := p.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("we are said to have ended: %v", err)
	}
	if _, found, err := Adopt(self.PID, self.StartTime+1); found || err != nil {
		t.Errorf("another process of this pid: %v, %v", found, err)
	}
}
