package load

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// alarm wakes one goroutine at a time that is exact to the kernel's timers. The runtime
// waits for it as it waits for a socket. A thread asleep in clock_nanosleep would be as
// exact, but keeps its place among GOMAXPROCS until the runtime notices, and answers of
// other clients would be read late.
type alarm struct {
	file   *os.File
	raw    int
	buffer [8]byte
}

func newAlarm() (*alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make a timer: %w", err)
	}
	return &alarm{file: os.NewFile(uintptr(fd), "timerfd"), raw: fd}, nil
}

// wait sleeps; false says that it was stopped.
func (a *alarm) wait(d time.Duration) (bool, error) {
	if d <= 0 {
		return true, nil
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
	if err := unix.TimerfdSettime(a.raw, 0, &spec, nil); err != nil {
		return false, fmt.Errorf("set a timer: %w", err)
	}
	if _, err := a.file.Read(a.buffer[:]); errors.Is(err, os.ErrDeadlineExceeded) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("wait for a timer: %w", err)
	}
	return true, nil
}

// stop ends the present wait and all that follow. Any goroutine may call it.
func (a *alarm) stop() { _ = a.file.SetReadDeadline(time.Unix(1, 0)) } // a timerfd is pollable, so it has deadlines

func (a *alarm) close() { _ = a.file.Close() } // nothing was written
