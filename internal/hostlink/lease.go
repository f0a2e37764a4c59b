package hostlink

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"kurabe"
	"kurabe/internal/store"
)

// Alive is what a host says each beat: that it is there, and which of its servers write an
// instance that a server on another host may take over. SilentFor announces that it will say
// nothing for a while, as while it is restarted; at most silentMost.
type Alive struct {
	Writers map[kurabe.InstanceID]kurabe.Epoch `json:",omitempty"`
	// Looking says that what it has reported of its servers may be of before it was away: it
	// keeps a host that is heard from being lost, and does not bring one back that is lost.
	Looking   bool          `json:",omitempty"`
	SilentFor time.Duration `json:",omitempty"`
	// Unheard says that the word before was not answered: it is not known whether the host hears
	// what it is told.
	Unheard bool `json:",omitempty"`
}

// AliveAnswer says which of the writers may go on for kurabe.LeaseTime after the word was
// sent, and for Alive.SilentFor longer.
type AliveAnswer struct {
	Granted []kurabe.InstanceID `json:",omitempty"`
}

// silentMost bounds what a host may ask for: so much later its loss is noticed.
const silentMost = 30 * time.Second

// writersMost bounds the writers of a host: each has a class with memory.
const writersMost = 4096

// Leases are until when the writers of this host may serve, by the service's word. Times are
// nanoseconds of CLOCK_BOOTTIME, which counts suspension and which nobody sets.
type Leases struct {
	clock  func() int64
	poked  chan struct{} // capacity 1
	looked atomic.Bool

	mu      sync.Mutex // guards the rest
	wants   map[kurabe.InstanceID]kurabe.Epoch
	until   map[kurabe.InstanceID]int64 // of the epoch that is wanted
	unheard bool                        // the word before was not answered
	said    int64                       // words so far
	heard   int64                       // the newest of them that was answered
	answer  chan struct{}               // closed and replaced when heard rises
}

// NewLeases returns Leases of a host, whose clock is Boottime.
func NewLeases(clock func() int64) *Leases {
	return &Leases{clock: clock, poked: make(chan struct{}, 1), wants: map[kurabe.InstanceID]kurabe.Epoch{}, until: map[kurabe.InstanceID]int64{}, answer: make(chan struct{})}
}

// Looked says that what the host has reported is true of now.
func (l *Leases) Looked() { l.looked.Store(true) }

// Want has a writer of an epoch asked for from now on, and once at once.
func (l *Leases) Want(id kurabe.InstanceID, epoch kurabe.Epoch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wants[id] == epoch {
		return
	}
	l.wants[id] = epoch
	delete(l.until, id)
	l.poke()
}

// poke has a word said at once, or after the one under way.
func (l *Leases) poke() {
	select {
	case l.poked <- struct{}{}:
	default:
	}
}

// Confirm waits until the service has answered a word that was said after the call, which is
// said at once. An error is ctx's.
func (l *Leases) Confirm(ctx context.Context) error {
	l.mu.Lock()
	after := l.said
	l.mu.Unlock()
	l.poke()
	for {
		l.mu.Lock()
		heard, answer := l.heard, l.answer
		l.mu.Unlock()
		if heard > after {
			return nil
		}
		select {
		case <-answer:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Drop ends that.
func (l *Leases) Drop(id kurabe.InstanceID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.wants, id)
	delete(l.until, id)
}

// Until is the end of a writer's lease, 0 without one.
func (l *Leases) Until(id kurabe.InstanceID) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.until[id]
}

// Beat says that the host is there, until ctx ends. A word that is not answered is no reason
// to end: whoever carries it tells of its troubles.
func (l *Leases) Beat(ctx context.Context, say func(context.Context, Alive) (AliveAnswer, error)) error {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for {
		_ = l.say(ctx, say, 0)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		case <-l.poked:
		}
	}
}

// Leave announces that nothing will be said for a while, so that nobody takes over meanwhile.
func (l *Leases) Leave(ctx context.Context, say func(context.Context, Alive) (AliveAnswer, error), d time.Duration) error {
	return l.say(ctx, say, d)
}

func (l *Leases) say(ctx context.Context, say func(context.Context, Alive) (AliveAnswer, error), silent time.Duration) error {
	l.mu.Lock()
	q := Alive{Writers: maps.Clone(l.wants), Looking: !l.looked.Load(), SilentFor: min(silent, silentMost), Unheard: l.unheard}
	l.said++
	number := l.said
	l.mu.Unlock()
	sent := l.clock()
	a, err := say(ctx, q)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unheard = err != nil
	if err != nil {
		return err
	}
	if q.Unheard {
		l.poke() // that it hears again is not to be a beat late
	}
	if number > l.heard {
		l.heard = number
		close(l.answer)
		l.answer = make(chan struct{})
	}
	for _, id := range a.Granted {
		if epoch, asked := q.Writers[id]; asked && l.wants[id] == epoch {
			l.until[id] = max(l.until[id], sent+int64(kurabe.LeaseTime+q.SilentFor))
		}
	}
	return nil
}

// Boottime is the time that leases count by, in nanoseconds.
func Boottime() int64 {
	var t unix.Timespec
	// It fails for a clock that the kernel does not know; this one is there since 2.6.39.
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0
	}
	return t.Nano()
}

// grant says which of the writers a host may go on with: those that the records name. What
// view shows may be late only by what was written since its host was last heard, and nobody
// takes over from a host that is heard but by its own word.
func grant(view *store.View, q Alive) (a AliveAnswer) {
	for _, id := range slices.Sorted(maps.Keys(q.Writers)) {
		i, ok := view.Instance(id.Owner())
		if ok && i.Group != nil && i.Group.Primary == id && i.Group.Epoch == q.Writers[id] {
			a.Granted = append(a.Granted, id)
		}
	}
	return a
}

// OwnLeases answers for the host that the planner itself runs on: whoever decides is there to
// hear it.
func OwnLeases(view *store.View) func(context.Context, Alive) (AliveAnswer, error) {
	return func(_ context.Context, q Alive) (AliveAnswer, error) { return grant(view, q), nil }
}
