package eventloop

import (
	"fmt"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// readBytes is what a connection reads in one turn.
	readBytes = 64 << 10

	// eventsPerTurn bounds how long the mail waits.
	eventsPerTurn = 256

	// moment is how long a loop may keep its processor while it waits.
	moment = 5 * time.Millisecond

	// tick is the time between two calls of OnTick.
	tick = 100 * time.Millisecond
)

// Loop owns connections and moves their bytes. Its methods but Do, Stop and Run belong to its
// own thread: to handlers, functions given to Do, and OnTick.
type Loop struct {
	// OnTick is called every 100 ms or less often, with the time of the turn, for whatever
	// has a deadline. Set before Run.
	OnTick func(now time.Time)

	poll, wake int
	conns      []*Conn // by descriptor
	buffers    bufferPool
	in         []byte // what is being read, if nothing is left of the reading before
	plain      []byte // what TLS has decrypted
	now        time.Time
	ticked     time.Time

	dirty   []*Conn // have something to write
	resumed []*Conn // were resumed: what they keep is to be given to their handlers
	ended   []*Conn // are to be told that they are closed, and their descriptors to be closed
	stopped bool

	mailbox struct {
		sync.Mutex
		waiting []func() // guarded
		woken   bool     // guarded: the loop has been woken for what waits
		closed  bool     // guarded: nothing is taken any more
	}
	mail []func()
}

// New gives a loop that is not running yet.
func New() (*Loop, error) {
	poll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create epoll: %w", err)
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		_ = unix.Close(poll)
		return nil, fmt.Errorf("create eventfd: %w", err)
	}
	l := &Loop{poll: poll, wake: wake, in: make([]byte, readBytes), now: time.Now()}
	if err := unix.EpollCtl(poll, unix.EPOLL_CTL_ADD, wake, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(wake)}); err != nil {
		_, _ = unix.Close(poll), unix.Close(wake)
		return nil, fmt.Errorf("watch eventfd: %w", err)
	}
	return l, nil
}

// Now is the time at which this turn began.
func (l *Loop) Now() time.Time { return l.now }

// Do has f called on the loop's thread, after everything that was given before. It says
// false, and does nothing, when the loop has stopped.
func (l *Loop) Do(f func()) bool {
	m := &l.mailbox
	m.Lock()
	defer m.Unlock()
	if m.closed {
		return false
	}
	m.waiting = append(m.waiting, f)
	if !m.woken {
		m.woken = true
		one := uint64(1)
		_, _ = unix.Write(l.wake, (*[8]byte)(unsafe.Pointer(&one))[:]) // full means woken
	}
	return true
}

// Stop ends Run after its turn.
func (l *Loop) Stop() { l.Do(func() { l.stopped = true }) }

// Run serves until Stop, then closes all connections. It takes the thread for itself.
func (l *Loop) Run() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer l.close()
	var events [eventsPerTurn]unix.EpollEvent
	for !l.stopped {
		n, err := l.wait(events[:])
		if err != nil {
			return fmt.Errorf("wait for events: %w", err)
		}
		l.now = time.Now()
		for i := range n {
			l.dispatch(events[i])
			l.settle()
		}
		if l.now.Sub(l.ticked) >= tick {
			l.ticked = l.now
			if l.OnTick != nil {
				l.OnTick(l.now)
				l.settle()
			}
		}
		l.reap()
	}
	return nil
}

// wait waits for a moment without a word to Go's scheduler, and only then with one: under load
// the next event comes sooner than the hand-over of the processor and back would take, and the
// scheduler's watch over threads in system calls stays asleep. A moment is short enough not to
// hold up others that need this processor: a stop of the world interrupts it (EINTR).
func (l *Loop) wait(events []unix.EpollEvent) (int, error) {
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(l.poll), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), uintptr(moment/time.Millisecond), 0, 0)
	if errno == 0 && n > 0 {
		return int(n), nil
	}
	waited, err := unix.EpollWait(l.poll, events, int(tick/time.Millisecond))
	if err == unix.EINTR {
		return 0, nil
	}
	return waited, err
}

func (l *Loop) dispatch(e unix.EpollEvent) {
	if int(e.Fd) == l.wake {
		l.runMail()
		return
	}
	if c := l.conns[e.Fd]; c != nil {
		c.event(e.Events)
	}
}

func (l *Loop) runMail() {
	var count [8]byte
	_, _ = unix.Read(l.wake, count[:])
	m := &l.mailbox
	m.Lock()
	l.mail, m.waiting = m.waiting, l.mail[:0]
	m.woken = false
	m.Unlock()
	for i, f := range l.mail {
		f()
		l.mail[i] = nil
		l.settle()
	}
}

// settle writes what handlers have written, and gives resumed connections what they keep,
// until neither has anything left.
func (l *Loop) settle() {
	for len(l.dirty)+len(l.resumed) > 0 {
		for len(l.dirty) > 0 {
			last := len(l.dirty) - 1
			c := l.dirty[last]
			l.dirty[last] = nil
			l.dirty = l.dirty[:last]
			c.dirty = false
			c.flush()
		}
		if last := len(l.resumed) - 1; last >= 0 {
			c := l.resumed[last]
			l.resumed[last] = nil
			l.resumed = l.resumed[:last]
			c.continued()
		}
	}
}

// reap tells of the connections that have ended. Their descriptors are closed only now,
// after the turn, so that no event of this turn is taken for one of a new connection under
// the same number.
func (l *Loop) reap() {
	for len(l.ended) > 0 {
		last := len(l.ended) - 1
		c := l.ended[last]
		l.ended[last] = nil
		l.ended = l.ended[:last]
		c.finish()
		l.settle()
	}
}

func (l *Loop) close() {
	l.mailbox.Lock()
	l.mailbox.closed = true
	l.mailbox.Unlock()
	for _, c := range l.conns {
		if c != nil {
			c.Close()
		}
	}
	l.reap()
	_, _ = unix.Close(l.wake), unix.Close(l.poll)
}

// register watches a descriptor, which must not block.
func (l *Loop) register(c *Conn) error {
	c.watched = unix.EPOLLIN | unix.EPOLLRDHUP
	if err := unix.EpollCtl(l.poll, unix.EPOLL_CTL_ADD, c.fd, &unix.EpollEvent{Events: c.watched, Fd: int32(c.fd)}); err != nil {
		return fmt.Errorf("watch a connection: %w", err)
	}
	for len(l.conns) <= c.fd {
		l.conns = append(l.conns, make([]*Conn, max(64, len(l.conns)))...)
	}
	l.conns[c.fd] = c
	return nil
}
