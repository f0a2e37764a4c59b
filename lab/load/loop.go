package load

import (
	"cmp"
	"fmt"
	"runtime"
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
// It waits by ppoll, for what is awaited and until somebody is due. By epoll the kernel tells
// of each event at each connection, which those who send pay, the server before all; and a
// timerfd may ring on another processor.
//
// The loop's own calls are raw, so the runtime thinks that it computes.
type loop struct {
	bell int // eventfd, for other goroutines

	start    time.Time
	sleeping []*task // the one that is due first at the end
	ready    []*task
	living   int
	// polls is the bell, and each connection in which somebody waits; awaited are these.
	polls   []unix.PollFd
	awaited []*taskConn // that of polls[n+1]

	mu    sync.Mutex // guards what follows
	woken []*task
}

func newLoop() (*loop, error) {
	bell, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("make a loop: %w", err)
	}
	return &loop{bell: bell, start: time.Now(), polls: []unix.PollFd{{Fd: int32(bell), Events: unix.POLLIN}}}, nil
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
func (l *loop) close() { _ = unix.Close(l.bell) } // nothing was written

// run works until all tasks have ended.
func (l *loop) run(tasks []*task, work func(n int)) error {
	// The thread's time limits are exact here, and what they were for whoever has it next.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, slackLeast, 0, 0, 0); err != nil {
		return fmt.Errorf("set the slack of a thread's timers: %w", err)
	}
	defer unix.Prctl(unix.PR_SET_TIMERSLACK, slackDefault, 0, 0, 0) // it takes any number
	l.living = len(tasks)
	for n, t := range tasks {
		t.begin(func() { work(n) })
	}
	for {
		now := l.ready
		l.ready = nil
		for _, t := range now {
			t.queued = false
			t.step()
		}
		if l.ready == nil {
			l.ready = now[:0]
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

// How much later than asked for the kernel may end a wait, ns; without a word it is 50 µs.
const (
	slackLeast   = 1
	slackDefault = 0 // what the thread had when it began
)

// waitMax is the longest that a loop waits for nobody who is due.
const waitMax = time.Hour

// waitOnce waits until somebody can go on.
func (l *loop) waitOnce() error {
	limit := waitMax
	if len(l.ready) > 0 {
		limit = 0 // who has passed goes on after those who can by now
	} else if len(l.sleeping) > 0 {
		limit = time.Duration(max(l.sleeping[len(l.sleeping)-1].due-l.now(), 0))
	}
	many, err := raw.Wait(l.polls, limit)
	if err != nil {
		return err
	}
	if many > 0 && l.polls[0].Revents != 0 {
		many--
		if l.polls[0].Revents&unix.POLLNVAL != 0 {
			return fmt.Errorf("wait in a loop: %w", unix.EBADF)
		}
		l.answer()
	}
	for n := len(l.awaited) - 1; n >= 0 && many > 0; n-- {
		if l.polls[n+1].Revents != 0 {
			many--
			l.queue(l.awaited[n].task)
		}
	}
	l.expire()
	return nil
}

// answer queues whom other goroutines have woken.
func (l *loop) answer() {
	var count [8]byte
	_, _ = unix.Read(l.bell, count[:]) // who rings from now on is heard at the next wait
	l.mu.Lock()
	woken := l.woken
	l.woken = nil
	l.mu.Unlock()
	for _, t := range woken {
		l.queue(t)
	}
}

// await parks a task until something happens to its connection, or to itself. False says
// that the loop is no more.
func (l *loop) await(c *taskConn, events int16) bool {
	l.polls = append(l.polls, unix.PollFd{Fd: int32(c.fd), Events: events})
	l.awaited = append(l.awaited, c)
	on := c.task.park()
	n, last := slices.Index(l.awaited, c), len(l.awaited)-1
	l.awaited[n], l.polls[n+1] = l.awaited[last], l.polls[last+1]
	l.awaited, l.polls = l.awaited[:last], l.polls[:last+1]
	return on
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
