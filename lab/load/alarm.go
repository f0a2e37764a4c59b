package load

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// alarm wakes one goroutine or task at a time that is exact to the kernel's timers.
type alarm struct {
	// task is who waits in a loop; nil when a goroutine waits in the runtime's poller, which
	// waits for file as it waits for a socket.
	task *task
	file *os.File
	raw  int // the descriptor of file

	stopped atomic.Bool
	mu      sync.Mutex // guards closed, and that nobody sets the timer after stop
	closed  bool
}

// newAlarm makes one for a task or, without, for any goroutine.
func newAlarm(t *task) (*alarm, error) {
	if t != nil {
		return &alarm{task: t}, nil
	}
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("make a timer: %w", err)
	}
	return &alarm{raw: fd, file: os.NewFile(uintptr(fd), "timerfd")}, nil
}

// wait sleeps; false says that it was stopped.
func (a *alarm) wait(d time.Duration) (bool, error) {
	if a.task != nil {
		a.task.sleep(d, &a.stopped)
		return !a.stopped.Load(), nil
	}
	if d <= 0 {
		return true, nil
	}
	if set, err := a.set(d); !set || err != nil {
		return false, err
	}
	var count [8]byte
	if _, err := a.file.Read(count[:]); errors.Is(err, os.ErrDeadlineExceeded) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("wait for a timer: %w", err)
	}
	return true, nil
}

// set starts the timer; false says that it was stopped.
func (a *alarm) set(d time.Duration) (bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopped.Load() {
		return false, nil
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
	if err := unix.TimerfdSettime(a.raw, 0, &spec, nil); err != nil {
		return false, fmt.Errorf("set a timer: %w", err)
	}
	return true, nil
}

// stop ends the present wait and all that follow. Any goroutine may call it.
func (a *alarm) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return
	}
	a.stopped.Store(true)
	if a.task != nil {
		a.task.loop.wake(a.task)
		return
	}
	_ = a.file.SetReadDeadline(time.Unix(1, 0)) // a timerfd is pollable, so it has deadlines
}

// close ends its use. Nobody waits any more.
func (a *alarm) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return
	}
	a.closed = true
	if a.file != nil {
		_ = a.file.Close() // nothing was written
	}
}
