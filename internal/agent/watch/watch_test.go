package watch_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"kurabe/internal/agent/watch"
)

// server counts its sessions; questions are what the test makes of them.
type server struct {
	open, opened, most atomic.Int64
}

type session struct{ of *server }

func (s session) Close() { s.of.open.Add(-1) }

func (s *server) connect(context.Context) (session, error) {
	s.opened.Add(1)
	s.most.Store(max(s.most.Load(), s.open.Add(1)))
	return session{s}, nil
}

func second() time.Duration { return time.Second }

// A purpose whose question hangs costs another one nothing, and never a pile of sessions.
func TestHangingPurposeIsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var wait sync.WaitGroup
		var look, sample server
		var looks, late atomic.Int64
		of := watch.Process{Wait: &wait}
		watch.Subscribe(ctx, of, watch.Purpose[session]{Every: time.Second, Limit: second, Open: look.connect,
			Ask:    func(context.Context, session) error { looks.Add(1); return nil },
			Failed: func(err error) { t.Error(err) }})
		watch.Subscribe(ctx, of, watch.Purpose[session]{Every: time.Second / 4, Limit: second, Open: sample.connect,
			Ask: func(ctx context.Context, _ session) error { <-ctx.Done(); return ctx.Err() },
			Failed: func(err error) {
				if !errors.Is(err, watch.ErrUnanswered) {
					t.Error(err)
				}
				late.Add(1)
			}})
		time.Sleep(time.Minute - time.Millisecond) // virtual
		synctest.Wait()
		if looks.Load() != 60 || look.opened.Load() != 1 || late.Load() != 59 || sample.most.Load() != 1 {
			t.Errorf("%d looks over %d sessions; %d questions late, %d sessions at a time", looks.Load(), look.opened.Load(), late.Load(), sample.most.Load())
		}
		cancel()
		wait.Wait()
		if look.open.Load() != 0 || sample.open.Load() != 0 {
			t.Errorf("%d and %d sessions are left", look.open.Load(), sample.open.Load())
		}
	})
}

// A server that is known to hang is asked by nobody but the purpose that finds out, and has no
// session more; a purpose that has nothing to ask has none.
func TestHangingServerIsAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var wait sync.WaitGroup
		var s, idle server
		var hangs atomic.Bool
		var asked, failed atomic.Int64
		of := watch.Process{Wait: &wait, Hangs: hangs.Load}
		watch.Subscribe(ctx, of, watch.Purpose[session]{Every: time.Second, Limit: second, Open: s.connect,
			Ask: func(context.Context, session) error { asked.Add(1); return nil },
			Failed: func(err error) {
				if !errors.Is(err, watch.ErrUnanswered) {
					t.Error(err)
				}
				failed.Add(1)
			}})
		watch.Subscribe(ctx, of, watch.Purpose[session]{Every: time.Second, Limit: second, Open: idle.connect,
			Due: func(context.Context) bool { return false }})
		time.Sleep(10*time.Second - time.Millisecond) // virtual
		hangs.Store(true)
		time.Sleep(10 * time.Second) // virtual
		hangs.Store(false)
		time.Sleep(10 * time.Second) // virtual
		cancel()
		wait.Wait()
		if asked.Load() != 20 || failed.Load() != 10 || s.opened.Load() != 1 || idle.opened.Load() != 0 {
			t.Errorf("asked %d times, not %d; %d sessions, %d of an idle purpose", asked.Load(), failed.Load(), s.opened.Load(), idle.opened.Load())
		}
	})
}

// Who takes an answer in slowly loses those in between. A question that is poked comes at once,
// and a session for something else is another one.
func TestSlowPokedAndAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var wait sync.WaitGroup
		var s server
		var asked atomic.Int64
		var duty atomic.Int64
		poked := make(chan struct{}, 1)
		watch.Subscribe(ctx, watch.Process{Wait: &wait}, watch.Purpose[session]{Every: time.Minute, Poked: poked, Limit: second, Open: s.connect,
			For: func() any { return duty.Load() },
			Ask: func(context.Context, session) error {
				asked.Add(1)
				time.Sleep(10 * time.Minute) // virtual
				return nil
			}, Failed: func(err error) { t.Error(err) }})
		time.Sleep(61 * time.Minute) // virtual
		if n := asked.Load(); n != 7 || s.opened.Load() != 1 {
			t.Errorf("asked %d times over %d sessions", n, s.opened.Load())
		}
		duty.Store(1)
		for range 100 {
			offer(poked, struct{}{})
		}
		time.Sleep(20 * time.Minute) // virtual
		if n := asked.Load(); n != 9 || s.opened.Load() != 2 || s.most.Load() > 2 {
			t.Errorf("then asked %d times over %d sessions", n, s.opened.Load())
		}
		cancel()
		wait.Wait()
	})
}

// A refusal is an answer; the next question has another session.
func TestRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var wait sync.WaitGroup
		var s server
		var failed []error
		watch.Subscribe(ctx, watch.Process{Wait: &wait}, watch.Purpose[session]{Every: time.Second, Limit: second, Open: s.connect,
			Ask: func(context.Context, session) error {
				if len(failed) == 1 {
					return fmt.Errorf("connect: %w", syscall.EAGAIN)
				}
				return errors.New("too many clients")
			}, Failed: func(err error) { failed = append(failed, err) }})
		time.Sleep(2500 * time.Millisecond) // virtual
		cancel()
		wait.Wait()
		if len(failed) != 3 || errors.Is(failed[0], watch.ErrUnanswered) || !errors.Is(failed[1], watch.ErrUnanswered) || s.opened.Load() != 3 || s.open.Load() != 0 {
			t.Errorf("%v over %d sessions, %d left", failed, s.opened.Load(), s.open.Load())
		}
	})
}

// A process that a signal has stopped is not asked, and keeps its session.
func TestStoppedProcessIsNotAsked(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	start := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))[22-3]
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	var s server
	asked, failed := make(chan struct{}, 1), make(chan error, 1)
	watch.Subscribe(ctx, watch.Process{PID: cmd.Process.Pid, Name: fmt.Sprintf("%d@%s", cmd.Process.Pid, start), Wait: &wait},
		watch.Purpose[session]{Every: time.Millisecond, Limit: func() time.Duration { return time.Hour }, Open: s.connect,
			Ask: func(context.Context, session) error { offer(asked, struct{}{}); return nil }, Failed: func(err error) { offer(failed, err) }})
	<-asked
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; !errors.Is(err, watch.ErrUnanswered) {
		t.Error(err)
	}
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for len(asked) > 0 {
		<-asked
	}
	<-asked
	cancel()
	wait.Wait()
	if s.opened.Load() != 1 || s.open.Load() != 0 {
		t.Errorf("%d sessions, %d left", s.opened.Load(), s.open.Load())
	}
}

func offer[T any](c chan T, v T) {
	select {
	case c <- v:
	default:
	}
}
