package warden

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lookEach bounds how long a warden sleeps: a page that was released ends it by then.
const lookEach = 250 * time.Millisecond

// Watch is the life of a warden. It returns nil when the page is released, and after kill
// when the deadline has passed; ready is called once the page is watched. An error of kill
// is tried again for as long as it lasts: a server that cannot be killed must not be left.
func Watch(path string, ready func() error, kill func() error) error {
	return watch(path, lookEach, ready, kill)
}

func watch(path string, lookEach time.Duration, ready func() error, kill func() error) error {
	p, err := Open(path)
	if err != nil {
		return err
	}
	defer p.Close()
	if err := p.lock(); err != nil {
		return err
	}
	timer, err := newTimer()
	if err != nil {
		return err
	}
	defer timer.Close()
	if err := ready(); err != nil {
		return err
	}
	for {
		deadline := p.word(wordDeadline).Load()
		now := Boottime()
		switch {
		case deadline == released:
			return nil
		case deadline != fired && now < time.Duration(deadline):
			if err := timer.until(min(time.Duration(deadline), now+lookEach)); err != nil {
				return err // the agent sees that nobody watches
			}
			continue
		case deadline != fired && !p.word(wordDeadline).CompareAndSwap(deadline, fired):
			continue // extended or released just now
		}
		for err = kill(); err != nil; err = kill() {
			time.Sleep(time.Millisecond)
		}
		return nil
	}
}

// timer waits for a moment of CLOCK_BOOTTIME, also one that passes while the machine
// sleeps or the process is stopped.
type timer struct{ file *os.File }

func newTimer() (timer, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC)
	if err != nil {
		return timer{}, fmt.Errorf("make a timer: %w", err)
	}
	return timer{os.NewFile(uintptr(fd), "timer")}, nil
}

func (t timer) until(at time.Duration) error {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(max(int64(at), 1))}
	if err := unix.TimerfdSettime(int(t.file.Fd()), unix.TFD_TIMER_ABSTIME, &spec, nil); err != nil {
		return fmt.Errorf("set the timer: %w", err)
	}
	var fired [8]byte
	_, err := t.file.Read(fired[:])
	if errors.Is(err, unix.EINTR) {
		return nil
	}
	return err
}

func (t timer) Close() error { return t.file.Close() }
