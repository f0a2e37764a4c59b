package load

import (
	"iter"
	"sync/atomic"
	"time"
)

// task is one client of a loop: a coroutine, which the loop's thread enters and leaves
// without the runtime's scheduler. A nil task is nobody's: what it does, it does at once.
type task struct {
	loop   *loop
	resume func() (struct{}, bool)
	end    func()
	yield  func(struct{}) bool

	inside bool // it has begun and not ended
	queued bool
	parked bool  // since it last passed
	lost   bool  // its loop cannot wait any more
	due    int64 // ns after the loop's start, while it sleeps
}

// begin makes the coroutine; the loop enters it soon.
func (t *task) begin(work func()) {
	t.resume, t.end = iter.Pull(func(yield func(struct{}) bool) {
		t.yield = yield
		work()
	})
	t.inside = true
	t.loop.queue(t)
}

// step goes on until the task waits again, or has ended.
func (t *task) step() {
	if _, more := t.resume(); !more {
		t.inside = false
		t.loop.living--
	}
}

// abandon ends a task of a loop that cannot wait any more.
func (t *task) abandon() {
	t.inside, t.lost = false, true
	t.end()
}

// park waits for anything at all: whoever calls it looks whether it was what he waits for.
// False says that the loop is no more.
func (t *task) park() bool {
	t.parked = true
	return t.yield(struct{}{})
}

// pass lets the loop's other tasks go on if they have had no occasion to since the last time:
// answers that are always there by the time they are looked for would shut them out.
func (t *task) pass() {
	if t == nil || !t.inside {
		return
	}
	if !t.parked {
		t.loop.queue(t)
		t.park() // a loop that is no more says so at the next wait
	}
	t.parked = false
}

// sleep waits, and ends early when stopped says so. Who sets what stopped reads wakes the
// task after it.
func (t *task) sleep(d time.Duration, stopped *atomic.Bool) {
	t.due = t.loop.now() + int64(d)
	if stopped.Load() || d <= 0 {
		return
	}
	t.loop.sleep(t)
	defer t.loop.awake(t)
	for !stopped.Load() && t.loop.now() < t.due {
		if !t.park() {
			return
		}
	}
}

// outside does what may wait elsewhere, such as a login, while the loop goes on with others.
func (t *task) outside(do func()) {
	if t == nil || !t.inside {
		do()
		return
	}
	var done atomic.Bool
	over := make(chan struct{})
	go func() {
		defer close(over)
		do()
		done.Store(true)
		t.loop.wake(t)
	}()
	for !done.Load() && t.park() {
	}
	<-over
}
