package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// ErrNotFrozen is what a FreezeError is: the process ran on, or did not stand still
// for as long as the work needed it to. It may be tried again, or done without.
var ErrNotFrozen = errors.New("the process was not frozen")

// FreezeError says why a process could not be kept still.
type FreezeError struct {
	PID    int
	Reason string
	Err    error // nil when the reason is all
}

func (e *FreezeError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("freeze pid %d: %s", e.PID, e.Reason)
	}
	return fmt.Sprintf("freeze pid %d: %s: %v", e.PID, e.Reason, e.Err)
}

func (e *FreezeError) Unwrap() error { return e.Err }

// Is makes errors.Is(err, ErrNotFrozen) work.
func (e *FreezeError) Is(target error) bool { return target == ErrNotFrozen }

// FreezeLimits bound how long a process may stand still because of us.
type FreezeLimits struct {
	Stop time.Duration // until the last thread has stopped
	Hold time.Duration // from the first thread that was stopped until all are let go
}

// Frozen says how long it took.
type Frozen struct {
	Stop time.Duration // until the last thread had stopped
	Hold time.Duration // from the first thread that was stopped until all were let go
}

// WhileFrozen stops every thread of a process, runs work, and lets them go. If it
// returns nil, none of them ran an instruction during work; what the kernel does for
// them goes on, as input and output that they had begun. Threads that are in the middle
// of a system call finish it first, if it cannot be interrupted.
//
// It is ptrace that stops them, not SIGSTOP: when we die, however, the kernel lets the
// threads go at once, where a stopped process would stand for ever. When a limit is
// reached they are let go as well; work is told by its context, and what it returns
// does not count.
//
// The processes that it may have as children run on. It needs what a debugger needs:
// CAP_SYS_PTRACE, or the same user and a kernel that does not mind, and no other
// debugger there.
func (p Process) WhileFrozen(ctx context.Context, limits FreezeLimits, work func(context.Context) error) (Frozen, error) {
	if !p.Alive() {
		return Frozen{}, &FreezeError{PID: p.PID, Reason: "it has ended", Err: os.ErrProcessDone}
	}
	if limits.Stop <= 0 || limits.Hold <= 0 {
		return Frozen{}, &FreezeError{PID: p.PID, Reason: "the deadline is missing"}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done, began := make(chan struct{}), false
	var frozen Frozen
	var err, failure error
	onOwnThread(func() {
		t := &tracer{process: p, threads: map[int]*tracee{}, until: time.Now().Add(limits.Stop)}
		frozen, err = t.hold(ctx, limits, done, func() {
			began = true
			go func() {
				defer close(done)
				failure = work(ctx)
			}()
		})
	})
	if began {
		cancel()
		<-done // Whatever it still does is done before the caller goes on.
	}
	if err == nil {
		return frozen, failure
	}
	if failure != nil && !errors.Is(failure, context.Canceled) {
		err = errors.Join(err, failure)
	}
	return frozen, err
}

// onOwnThread runs f on a thread that ends with it: what the thread traces, the kernel
// then lets go, whatever f forgot.
func onOwnThread(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// The main thread does not end. While it waits here, another has the turn.
			onOwnThread(f)
			runtime.UnlockOSThread()
			return
		}
		f()
	}()
	<-done
}

// hold does what WhileFrozen says, on the thread that traces. An error says that what
// work did between begin and done does not count.
func (t *tracer) hold(ctx context.Context, limits FreezeLimits, done <-chan struct{}, begin func()) (Frozen, error) {
	began := time.Now()
	err := t.stopAll(ctx)
	frozen := Frozen{Stop: time.Since(began)}
	if err != nil {
		_ = t.release()
		return frozen, err
	}
	timer := time.NewTimer(limits.Hold - frozen.Stop)
	defer timer.Stop()
	begin()
	select {
	case <-done:
	case <-timer.C:
		err = &FreezeError{PID: t.process.PID, Reason: fmt.Sprintf("the work was not done within %v", limits.Hold)}
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	// One that died, or that somebody let go, may have moved beside the work.
	if lost := t.release(); err == nil {
		err = lost
	}
	frozen.Hold = time.Since(began)
	return frozen, err
}
