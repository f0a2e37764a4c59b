package load

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// alarm wakes one goroutine at a time that is exact to the kernel's timers.
type alarm struct {
	raw int
	// file is for the runtime, which waits for it as it waits for a socket; nil when a
	// thread waits in the kernel. That answers sooner by what the poller takes, but a thread
	// keeps its place among GOMAXPROCS until the runtime notices, and where there are no more
	// places than processors the answers of other clients are read late.
	file *os.File

	mu      sync.Mutex // guards what follows, and that nobody sets the timer after stop
	stopped bool
	closed  bool
}

// patientSlice is how long a thread stays in the kernel at a time. After ten milliseconds
// the runtime takes its place away, and then looks every twenty microseconds for more to
// take: with 3,500 statements a second that was a sixth of a processor, which the server
// lacked. Slices end a part of it: a place that has had no other goroutine for ten
// milliseconds is taken away too.
const patientSlice = 5 * time.Millisecond

// newAlarm makes one that waits in the kernel or, if not patient, in the runtime's poller.
func newAlarm(patient bool) (*alarm, error) {
	flags := unix.TFD_CLOEXEC
	if !patient {
		flags |= unix.TFD_NONBLOCK
	}
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, flags)
	if err != nil {
		return nil, fmt.Errorf("make a timer: %w", err)
	}
	a := &alarm{raw: fd}
	if !patient {
		a.file = os.NewFile(uintptr(fd), "timerfd")
	}
	return a, nil
}

// wait sleeps; false says that it was stopped.
func (a *alarm) wait(d time.Duration) (bool, error) {
	if a.file != nil {
		return a.poll(d)
	}
	due := time.Now().Add(d)
	for d > 0 {
		if rang, err := a.sleep(min(d, patientSlice)); !rang || err != nil {
			return false, err
		}
		d = time.Until(due)
	}
	return true, nil
}

// poll waits in the runtime's poller.
func (a *alarm) poll(d time.Duration) (bool, error) {
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

// sleep waits in the kernel, for a timer that stop lets expire at once.
func (a *alarm) sleep(d time.Duration) (bool, error) {
	if set, err := a.set(d); !set || err != nil {
		return false, err
	}
	var count [8]byte
	for {
		_, err := unix.Read(a.raw, count[:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return false, fmt.Errorf("wait for a timer: %w", err)
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		return !a.stopped, nil
	}
}

// set starts the timer; false says that it was stopped.
func (a *alarm) set(d time.Duration) (bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopped {
		return false, nil
	}
	if err := a.setTimer(d); err != nil {
		return false, fmt.Errorf("set a timer: %w", err)
	}
	return true, nil
}

func (a *alarm) setTimer(d time.Duration) error {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
	return unix.TimerfdSettime(a.raw, 0, &spec, nil)
}

// stop ends the present wait and all that follow. Any goroutine may call it.
func (a *alarm) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return
	}
	a.stopped = true
	if a.file != nil {
		_ = a.file.SetReadDeadline(time.Unix(1, 0)) // a timerfd is pollable, so it has deadlines
		return
	}
	_ = a.setTimer(1) // what can be set once can be set again
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
		return
	}
	_ = unix.Close(a.raw) // nothing was written
}
