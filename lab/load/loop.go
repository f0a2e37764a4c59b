package load

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"kurabe/lab/load/raw"
)

// loop runs many clients on one thread, as a thread of pgbench does: it waits in the kernel
// for all of them at once and goes on with whoever was answered or is due. Its clients are
// written as if each had a thread; they are coroutines, see task.
//
// Goroutines that wait in the runtime's poller answer later and take the server's processor
// meanwhile: whoever finds no work looks for some before it sleeps. A thread of the kernel
// for each client costs a switch for each answer, and the runtime's monitor, which takes the
// place of a thread in a system call away, wakes every 20 µs to look for the next.
//
// The loop's own calls are raw, so the runtime thinks that it computes.
type loop struct {
	poll  int // epoll
	timer int // timerfd: exact, where the time limit of a wait has the thread's slack
	bell  int // eventfd, for other goroutines

	rings    int64 // when the timer rings, ns after the start; 0 for never
	start    time.Time
	sleeping []*task // the one that is due first at the end
	ready    []*task
	living   int
	conns    map[int32]*taskConn
	events   [64]unix.EpollEvent

	mu    sync.Mutex // guards what follows
	woken []*task
}

func newLoop() (*loop, error) {
	l := &loop{poll: -1, timer: -1, bell: -1, start: time.Now(), conns: map[int32]*taskConn{}}
	var failures [3]error
	l.poll, failures[0] = unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	l.timer, failures[1] = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	l.bell, failures[2] = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	err := errors.Join(failures[:]...)
	for _, fd := range []int{l.timer, l.bell} {
		if err == nil {
			err = l.watch(fd, unix.EPOLLIN)
		}
	}
	if err != nil {
		l.close()
		return nil, fmt.Errorf("make a loop: %w", err)
	}
	return l, nil
}

// newLoops makes so many.
func newLoops(many int) (all []*loop, err error) {
	for range many {
		l, err := newLoop()
		if err != nil {
			closeLoops(all)
			return nil, err
		}
		all = append(all, l)
	}
	return all, nil
}

func closeLoops(all []*loop) {
	for _, l := range all {
		l.close()
	}
}

// close ends its use. None of its tasks lives any more.
func (l *loop) close() {
	for _, fd := range []int{l.poll, l.timer, l.bell} {
		if fd >= 0 {
			_ = unix.Close(fd) // nothing was written
		}
	}
}

// watch asks for what happens to a descriptor, each time once.
func (l *loop) watch(fd int, events uint32) error {
	err := unix.EpollCtl(l.poll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events | unix.EPOLLET, Fd: int32(fd)})
	return os.NewSyscallError("epoll_ctl", err)
}

// run works until all tasks have ended.
func (l *loop) run(tasks []*task, work func(n int)) error {
	l.living = len(tasks)
	for n, t := range tasks {
		t.begin(func() { work(n) })
	}
	for {
		for len(l.ready) > 0 {
			now := l.ready
			l.ready = nil
			for _, t := range now {
				t.queued = false
				t.step()
			}
			if l.ready == nil {
				l.ready = now[:0]
			}
		}
		if l.living == 0 {
			return nil
		}
		if err := l.waitOnce(); err != nil {
			for _, t := range tasks {
				t.abandon()
			}
			return err
		}
	}
}

// waitOnce waits until somebody can go on.
func (l *loop) waitOnce() error {
	if err := l.setTimer(); err != nil {
		return err
	}
	n, err := raw.Wait(l.poll, l.events[:])
	if err != nil {
		return err
	}
	for _, e := range l.events[:n] {
		switch int(e.Fd) {
		case l.timer:
			l.rings = 0
		case l.bell:
			l.mu.Lock()
			woken := l.woken
			l.woken = nil
			l.mu.Unlock()
			for _, t := range woken {
				l.queue(t)
			}
		default:
			if c := l.conns[e.Fd]; c != nil {
				c.happened(e.Events)
				l.queue(c.task)
			}
		}
	}
	l.expire()
	return nil
}

// expire queues who is due.
func (l *loop) expire() {
	if len(l.sleeping) == 0 {
		return
	}
	now := l.now()
	for n := len(l.sleeping) - 1; n >= 0 && l.sleeping[n].due <= now; n-- {
		l.queue(l.sleeping[n])
		l.sleeping = l.sleeping[:n]
	}
}

// setTimer sets the timer for who is due first, if it is not set for that already.
func (l *loop) setTimer() error {
	if len(l.sleeping) == 0 {
		return nil // one that rings for nobody does no harm
	}
	due := l.sleeping[len(l.sleeping)-1].due
	if due == l.rings {
		return nil
	}
	if err := raw.SetTimer(l.timer, time.Duration(max(due-l.now(), 1))); err != nil {
		return err
	}
	l.rings = due
	return nil
}

// now is the time after the loop was made, ns.
func (l *loop) now() int64 { return int64(time.Since(l.start)) }

// queue lets a task go on soon.
func (l *loop) queue(t *task) {
	if !t.queued && t.inside {
		t.queued = true
		l.ready = append(l.ready, t)
	}
}

// sleep notes when a task is due; awake forgets it. Both are the tasks' own.
func (l *loop) sleep(t *task) {
	n, _ := slices.BinarySearchFunc(l.sleeping, t, func(a, b *task) int { return cmp.Compare(b.due, a.due) })
	l.sleeping = slices.Insert(l.sleeping, n, t)
}

func (l *loop) awake(t *task) {
	if n := slices.Index(l.sleeping, t); n >= 0 {
		l.sleeping = slices.Delete(l.sleeping, n, n+1)
	}
}

// wake lets a task go on. Any goroutine may call it.
func (l *loop) wake(t *task) {
	l.mu.Lock()
	l.woken = append(l.woken, t)
	l.mu.Unlock()
	one := [8]byte{1}                 // any number that is not zero, in either byte order
	_, _ = unix.Write(l.bell, one[:]) // it fails only when it has rung and not been heard
}
