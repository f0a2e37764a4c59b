package warden

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"kurabe/internal/proc"
)

// Now is the clock of leases, in nanoseconds: CLOCK_BOOTTIME, which nobody sets and which
// counts while the machine is suspended.
func Now() int64 { return proc.Boottime() }

// leaseMax bounds how far ahead the end may be: what asks for more is mistaken about the
// clock, and would leave the server unguarded.
const leaseMax = 10 * time.Minute

var (
	// ErrEnded means that the lease has ended: the server is being killed, or is dead.
	ErrEnded = errors.New("the lease has ended")
	// ErrBackwards means that the lease in force ends later than what was asked for.
	ErrBackwards = errors.New("the lease in force ends later")
)

// lease is the one in force.
type lease struct {
	timer *os.File      // a timerfd, readable at the end
	over  chan struct{} // closed when the server is to die

	mu        sync.Mutex // guards what follows, and setting timer
	until     int64      // 0: none was given yet
	addresses []netip.Addr
	reason    string // "" until over
	gone      bool   // disarmed: nothing happens any more
}

func newLease() (*lease, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("make timer: %w", err)
	}
	return &lease{timer: os.NewFile(uintptr(fd), "timer"), over: make(chan struct{})}, nil
}

// extend moves the end of the lease. A lease that is past its end is over, whether or not
// the timer has been noticed: after a pause of ours a request may be read before it.
func (l *lease) extend(until int64, addresses []netip.Addr) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.endedLocked() {
		return ErrEnded
	}
	now := Now()
	switch {
	case until < l.until:
		return ErrBackwards
	case until <= now:
		return fmt.Errorf("a lease that ended %v ago", time.Duration(now-until))
	case until > now+int64(leaseMax):
		return fmt.Errorf("a lease of %v is longer than %v", time.Duration(until-now), leaseMax)
	}
	return l.setLocked(until, addresses)
}

// restore goes on with a lease that a predecessor took, over or not.
func (l *lease) restore(until int64, addresses []netip.Addr) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.setLocked(until, addresses)
}

func (l *lease) setLocked(until int64, addresses []netip.Addr) error {
	at := unix.ItimerSpec{Value: unix.NsecToTimespec(until)}
	raw, err := l.timer.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := raw.Control(func(fd uintptr) {
		inner = unix.TimerfdSettime(int(fd), unix.TFD_TIMER_ABSTIME, &at, nil)
	}); err != nil {
		return err
	}
	if inner != nil {
		return fmt.Errorf("set timer: %w", inner)
	}
	l.until, l.addresses = until, slices.Clone(addresses)
	return nil
}

// endedLocked also ends what is due.
func (l *lease) endedLocked() bool {
	if l.until != 0 && Now() >= l.until {
		l.endLocked("the lease ended without being renewed")
	}
	return l.reason != "" || l.gone
}

func (l *lease) endLocked(reason string) {
	if l.reason == "" && !l.gone {
		l.reason = reason
		close(l.over)
	}
}

// disarm ends the warden's duty, unless its hour has come.
func (l *lease) disarm() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.endedLocked() {
		return ErrEnded
	}
	l.gone = true
	return nil
}

// watch ends the lease when the timer says so. The timer is asked by the kernel's clock, so
// a warden that was stopped sees it the moment it goes on.
func (l *lease) watch() {
	for buf := make([]byte, 8); ; {
		_, err := l.timer.Read(buf)
		l.mu.Lock()
		if err != nil {
			// A timer that cannot be read tells of no end any more: better now than never.
			l.endLocked("the timer failed: " + err.Error())
		}
		ended := l.endedLocked()
		l.mu.Unlock()
		if ended {
			return
		}
	}
}

func (l *lease) state() (until int64, ended bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.until, l.endedLocked()
}

// verdict is what the fence needs to know.
func (l *lease) verdict() (reason string, until int64, addresses []netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reason, l.until, l.addresses
}
