package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"kurabe"
)

// The pause before a lost watch is taken up again doubles between these, so
// that a store that is down is not asked in a circle.
const (
	resyncPauseMin = 20 * time.Millisecond
	resyncPauseMax = 2 * time.Second
)

// View is a typed copy of the whole store. Run keeps it current; every method
// may be called from any goroutine at any time.
//
// What a View returns is shared with every other reader and with the next call:
// it must not be mutated, nor anything it points to.
type View struct {
	kv KV
	// pauseMin is resyncPauseMin; tests that cut many watches shorten it.
	pauseMin time.Duration

	mu       sync.RWMutex // guards everything below
	state    *state
	revision int64 // everything up to it is in state
	synced   bool  // a watch is running
	// trouble is why the view is not current, nil when it is.
	trouble error
	// moved is closed and replaced when revision, synced or trouble change.
	moved chan struct{}
	// subscribers are woken after each change.
	subscribers map[chan struct{}]struct{}
	// deliverers are woken too by what wakes no subscriber: notifications and cursors.
	deliverers map[chan struct{}]struct{}
	dirty      Dirty
	givenUp    map[kurabe.TopicID]int // see TakeGivenUp
}

// Dirty is what changed since the last TakeDirty, and what its plan depends on: an
// instance with its snapshots and a snapshot with its instance, those restored from
// it, its original and its copies. All says that everything has
// to be looked at: at start, after a lost watch, when a host changed.
type Dirty struct {
	All       bool
	Instances map[kurabe.InstanceID]struct{}
	Snapshots map[kurabe.SnapshotID]struct{}
}

// NewView returns an empty view; Run fills it.
func NewView(kv KV) *View {
	return &View{
		kv: kv, pauseMin: resyncPauseMin, state: newState(), moved: make(chan struct{}),
		subscribers: map[chan struct{}]struct{}{}, deliverers: map[chan struct{}]struct{}{}, givenUp: map[kurabe.TopicID]int{},
		trouble: errors.New("store view: not loaded yet"),
	}
}

// Run keeps the view current until ctx ends, whatever happens to the store. It
// returns the reason that ctx gives.
func (v *View) Run(ctx context.Context) error {
	pause := v.pauseMin
	for {
		loaded, err := v.follow(ctx)
		if ctx.Err() != nil {
			v.lost(ctx.Err())
			return ctx.Err()
		}
		v.lost(err)
		if loaded {
			pause = v.pauseMin
		}
		// Jitter keeps the processes that lost one store from coming back as one.
		select {
		case <-time.After(pause/2 + rand.N(pause)):
		case <-ctx.Done():
			return ctx.Err()
		}
		pause = min(2*pause, resyncPauseMax)
	}
}

// follow loads everything and applies what happens until the watch breaks. It
// says whether it got as far as loading.
func (v *View) follow(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	entries, revision, err := v.kv.List(ctx, Root)
	if err != nil {
		return false, fmt.Errorf("load store view: %w", err)
	}
	fresh := newState()
	for _, e := range entries {
		fresh.put(e)
	}
	v.replace(fresh, revision)
	for batch := range v.kv.Watch(ctx, Root, revision+1) {
		if batch.Resync {
			return true, errors.New("store view: watch lost, loading again")
		}
		v.apply(batch)
	}
	return true, errors.New("store view: watch ended")
}

// replace puts a freshly loaded state in force. Everything is dirty: what
// changed while nobody watched is not known.
func (v *View) replace(fresh *state, revision int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.state, v.revision, v.synced, v.trouble = fresh, revision, true, nil
	v.dirty = Dirty{All: true}
	v.announceLocked()
}

// apply brings one batch in.
func (v *View) apply(b Batch) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, e := range b.Events {
		var touched touch
		if e.Deleted {
			touched = v.state.remove(e.Key)
		} else {
			touched = v.state.put(e.Entry)
		}
		v.markLocked(touched)
	}
	v.revision = b.Revision
	if quiet(b) {
		v.movedLocked()
		wake(v.deliverers)
		return
	}
	v.announceLocked()
}

// quiet says whether a batch holds nothing that a plan could wait for: reports of logs, which
// are written every few seconds, or notifications, of which there can be thousands.
func quiet(b Batch) bool {
	for _, e := range b.Events {
		switch parseKey(e.Key).kind {
		case KindLogReport, KindNotification, KindDeliveryCursor, KindEventCursor, KindAlarm, KindAlarmStatus, KindAlarmEntry:
		default:
			return false
		}
	}
	return len(b.Events) > 0
}

// lost notes that the view stands still, and why.
func (v *View) lost(why error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.synced, v.trouble = false, why
	v.movedLocked()
}

func (v *View) markLocked(t touch) {
	if t.all {
		v.dirty.All = true
	}
	v.dirty.Instances = withAll(v.dirty.Instances, t.instances)
	v.dirty.Snapshots = withAll(v.dirty.Snapshots, t.snapshots)
}

func withAll[ID comparable](set map[ID]struct{}, ids []ID) map[ID]struct{} {
	if set == nil && len(ids) > 0 {
		set = map[ID]struct{}{}
	}
	for _, id := range ids {
		set[id] = struct{}{}
	}
	return set
}

func (v *View) announceLocked() {
	v.movedLocked()
	wake(v.subscribers)
	wake(v.deliverers)
}

func wake(list map[chan struct{}]struct{}) {
	for c := range list {
		select {
		case c <- struct{}{}:
		default: // a wake-up is waiting already
		}
	}
}

func (v *View) movedLocked() {
	close(v.moved)
	v.moved = make(chan struct{})
}

// Subscribe returns a channel that is sent to after changes. It carries no
// data and wake-ups melt together: look at everything of interest each time.
// The first wake-up is there at once. stop ends it.
func (v *View) Subscribe() (wake <-chan struct{}, stop func()) { return v.subscribe(v.subscribers) }

// SubscribeDeliveries is Subscribe, with a wake-up after each notification and cursor too.
func (v *View) SubscribeDeliveries() (wake <-chan struct{}, stop func()) {
	return v.subscribe(v.deliverers)
}

func (v *View) subscribe(list map[chan struct{}]struct{}) (wake <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	c <- struct{}{}
	v.mu.Lock()
	defer v.mu.Unlock()
	list[c] = struct{}{}
	return c, func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		delete(list, c)
	}
}

// TakeDirty returns what changed since the last call and forgets it. It is for
// one consumer, the reconcile loop.
func (v *View) TakeDirty() Dirty {
	v.mu.Lock()
	defer v.mu.Unlock()
	d := v.dirty
	v.dirty = Dirty{}
	return d
}

// WaitReady waits until the view was loaded once.
func (v *View) WaitReady(ctx context.Context) error { return v.WaitRevision(ctx, 1) }

// WaitRevision waits until the view shows everything up to a revision, as Txn
// returned it: a reader sees its own writes. Revision 0 is no write.
func (v *View) WaitRevision(ctx context.Context, revision int64) error {
	for {
		v.mu.RLock()
		reached, moved, trouble := v.revision >= revision, v.moved, v.trouble
		v.mu.RUnlock()
		if reached {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return fmt.Errorf("wait for revision %d: %w", revision, errors.Join(ctx.Err(), trouble))
		}
	}
}

// Healthy returns nil when the view is current and every record in it could be
// read, else the reasons.
func (v *View) Healthy() error {
	v.mu.RLock()
	defer v.mu.RUnlock()
	errs := []error{v.trouble}
	for _, e := range v.state.corruptSorted() {
		errs = append(errs, e)
	}
	return errors.Join(errs...)
}

// Revision is how far the view has come.
func (v *View) Revision() int64 {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.revision
}
