package warden

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"kurabe/internal/proc"
)

// lateMax is how long after the end of a lease its server may live, on a busy machine.
const lateMax = 300 * time.Millisecond

// note is what a warden of the bed has left.
func (b *bed) note() (n Note, found bool, err error) {
	raw, err := os.ReadFile(b.config.file(noteName))
	if errors.Is(err, fs.ErrNotExist) {
		return n, false, nil
	}
	return n, true, errors.Join(err, json.Unmarshal(raw, &n))
}

func TestEndOfLease(t *testing.T) {
	b := newBed(t)
	w := b.ensure(t)
	_, pids := b.start(t)
	end := extend(t, w, 300*time.Millisecond)
	late := killed(t, pids, end)
	t.Logf("%d processes, the last ended %v after the end of the lease", len(pids), late)
	if late > lateMax {
		t.Errorf("ended %v after the end of its lease", late)
	}
	ended(t, w)
	note, found, err := b.note()
	if err != nil || !found || note.Until != end || note.Boottime < end || note.Killed < len(pids) || len(note.Left) > 0 {
		t.Errorf("note %+v %v %v", note, found, err)
	}
	if held, err := proc.LockHeld(b.config.LockFile); held || err != nil {
		t.Errorf("lock held: %v %v", held, err)
	}
	// The next one begins anew.
	if end, err := b.ensure(t).Until(deadline(t)); end != 0 || err != nil {
		t.Errorf("the next warden has a lease until %d, %v", end, err)
	}
}

func TestExtendKeepsAlive(t *testing.T) {
	b := newBed(t)
	w := b.ensure(t)
	_, pids := b.start(t)
	first := extend(t, w, 400*time.Millisecond)
	end := extend(t, w, 900*time.Millisecond)
	if err := w.Extend(deadline(t), first, Target{}); !errors.Is(err, ErrBackwards) {
		t.Errorf("backwards: %v", err)
	}
	until(t, first+int64(100*time.Millisecond))
	if dead(pids) || !w.process.Alive() {
		t.Fatal("ended although the lease was extended")
	}
	killed(t, pids, end)
	if err := w.Extend(deadline(t), Now()+int64(time.Second), Target{}); err == nil {
		t.Error("extended after its end")
	}
}

func TestExtendRefuses(t *testing.T) {
	b := newBed(t)
	w := b.ensure(t)
	_, pids := b.start(t)
	for name, end := range map[string]int64{"past": Now() - 1, "nothing": 0, "negative": -1, "next year": Now() + int64(365*24*time.Hour)} {
		if err := w.Extend(deadline(t), end, Target{}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if end, err := w.Until(deadline(t)); end != 0 || err != nil || dead(pids) {
		t.Errorf("lease until %d, %v", end, err)
	}
}

// The agent's death does not end the warden, nor its duty; the next agent finds it.
func TestAgentKilled(t *testing.T) {
	b := newBed(t)
	_, pids := b.start(t)
	agent := b.agent(t, 2*time.Second)
	_ = agent.Process.Kill()
	_ = agent.Wait()
	w := b.ensure(t)
	end, err := w.Until(deadline(t))
	if err != nil || end == 0 {
		t.Fatalf("the warden that was left has a lease until %d, %v", end, err)
	}
	if late := killed(t, pids, end); late > lateMax {
		t.Errorf("ended %v after the end of its lease", late)
	}
	ended(t, w)
}

// A server that is started after the lease was given dies with it, and one that was started
// again dies as well: nobody remembers a pid.
func TestServerAfterLease(t *testing.T) {
	b := newBed(t)
	w := b.ensure(t)
	end := extend(t, w, 1500*time.Millisecond)
	b.start(t)
	tree := proc.NewTree(b.config.marks())
	if err := tree.Look(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of the first", func() bool {
		found, err := tree.Kill(deadline(t))
		return err == nil && len(found) == 0
	})
	_ = os.Remove(b.dir + "/log")
	_, pids := b.start(t)
	killed(t, pids, end)
}

func TestStoppedWarden(t *testing.T) {
	b := newBed(t)
	w := b.ensure(t)
	_, pids := b.start(t)
	end := extend(t, w, 300*time.Millisecond)
	if err := syscall.Kill(w.process.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	until(t, end+int64(200*time.Millisecond))
	if dead(pids) {
		t.Fatal("killed by a warden that is stopped")
	}
	// A renewal that waits in the socket meanwhile comes too late.
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := w.Extend(ctx, Now()+int64(time.Minute), Target{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a stopped warden answered: %v", err)
	}
	went := Now()
	if err := syscall.Kill(w.process.PID, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if late := killed(t, pids, went); late > lateMax {
		t.Errorf("ended %v after the warden went on", late)
	}
}

func TestDisarm(t *testing.T) {
	b := newBed(t)
	w := b.ensure(t)
	_, pids := b.start(t)
	end := extend(t, w, 500*time.Millisecond)
	if err := w.Disarm(deadline(t)); err != nil || w.process.Alive() {
		t.Fatal("disarm:", err)
	}
	until(t, end+int64(100*time.Millisecond))
	for _, pid := range pids {
		if dead([]int{pid}) {
			t.Errorf("process %d is dead", pid)
		}
	}
	if _, found, err := b.note(); found || err != nil {
		t.Errorf("a note is left: %v", err)
	}
}

func TestSignals(t *testing.T) {
	b := newBed(t)
	w := b.ensure(t)
	_, pids := b.start(t)
	end := extend(t, w, 600*time.Millisecond)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGPIPE} {
		if err := syscall.Kill(w.process.PID, sig); err != nil {
			t.Fatal(err)
		}
		if got, err := w.Until(deadline(t)); err != nil || got != end {
			t.Fatalf("after %v: %d %v", sig, got, err)
		}
	}
	killed(t, pids, end)
	ended(t, w)
	w = b.ensure(t)
	if err := syscall.Kill(w.process.PID, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ended(t, w) // without a lease it goes
}

func TestTwoEnsures(t *testing.T) {
	b := newBed(t)
	var all sync.WaitGroup
	pids := make([]int, 6)
	for i := range pids {
		all.Go(func() {
			w, err := Ensure(deadline(t), b.config)
			if err != nil {
				t.Error(err)
				return
			}
			defer w.Close()
			pids[i] = w.process.PID
		})
	}
	all.Wait()
	for _, pid := range pids {
		if pid != pids[0] {
			t.Fatalf("wardens %v", pids)
		}
	}
}

// One of another version, or with another order, becomes the one asked for, and the lease
// goes on.
func TestSucceed(t *testing.T) {
	b := newBed(t)
	w := b.ensure(t)
	_, pids := b.start(t)
	end := extend(t, w, 1500*time.Millisecond)
	b.config.Cgroups = []string{"/nonexistent/cgroup.procs"}
	next := b.ensure(t)
	if next.process.PID != w.process.PID || !w.process.Alive() {
		t.Errorf("pid %d became %d", w.process.PID, next.process.PID)
	}
	if got, err := next.Until(deadline(t)); got != end || err != nil {
		t.Errorf("lease until %d, want %d, %v", got, end, err)
	}
	if late := killed(t, pids, end); late > lateMax {
		t.Errorf("ended %v after the end of its lease", late)
	}
}
