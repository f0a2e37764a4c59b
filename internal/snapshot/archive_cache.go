package snapshot

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kurabe"
)

// What is asked often is answered from memory, so that a repository which is down
// or slow holds up nobody.
const (
	// lookTime is how long a caller waits for the repository.
	lookTime = 2 * time.Second
	// looksAtOnce bounds the questions under way, and so the goroutines that wait for a
	// file system that hangs: a service that starts asks for each of its snapshots.
	looksAtOnce = 16
	// lookPause is how long nobody asks again after it did not answer.
	lookPause = 30 * time.Second
	// An answer is believed so long. Only a mishap takes away what is complete.
	absentTime  = 30 * time.Second
	presentTime = time.Hour
)

// known is what the repository answered.
type known struct {
	entries  map[kurabe.SnapshotID]entry
	changes  int // of what this process did: an answer from before says nothing
	failure  error
	failedAt time.Time
}

// entry is what is known of one snapshot: its record, nil while it is not there.
type entry struct {
	record *Record
	at     time.Time
}

func (e entry) fresh(now time.Time) bool {
	if e.at.IsZero() {
		return false
	}
	if e.record != nil {
		return now.Before(e.at.Add(presentTime))
	}
	return now.Before(e.at.Add(absentTime))
}

func (e entry) answer() (Record, bool) {
	if e.record == nil {
		return Record{}, false
	}
	return *e.record, true
}

// Known says whether a snapshot is complete in the repository, from memory or after
// lookTime at most. The error says that it cannot be told; what was there when the
// repository last answered is taken to be there.
func (a *Archive) Known(id kurabe.SnapshotID) (Record, bool, error) {
	now := time.Now()
	a.mu.Lock()
	e, failure, failedAt := a.known.entries[id], a.known.failure, a.known.failedAt
	a.mu.Unlock()
	if !e.fresh(now) {
		err := failure
		if failure == nil || now.After(failedAt.Add(lookPause)) {
			var found entry
			if found, err = a.look(id); err == nil {
				e = found
			}
		}
		if err != nil && e.record == nil {
			return Record{}, false, err
		}
	}
	r, ok := e.answer()
	return r, ok, nil
}

// look asks the repository. Its goroutine outlives the call when a file system
// hangs that no context ends: turn sees to it that there are few of those. Who waits in
// vain while others are asked may come again soon: their answers say that all is well.
func (a *Archive) look(id kurabe.SnapshotID) (entry, error) {
	silent := errors.New("the repository of backups does not answer")
	ctx, cancel := context.WithTimeoutCause(context.Background(), lookTime, silent)
	type answer struct {
		entry
		err error
	}
	done := make(chan answer, 1)
	go func() {
		defer cancel()
		select {
		case a.turn <- struct{}{}:
		case <-ctx.Done():
			return
		}
		defer func() { <-a.turn }()
		// A time of its own: what comes too late for the caller is known to the next.
		own, cancel := context.WithTimeoutCause(context.Background(), lookTime, silent)
		defer cancel()
		changes := a.changes()
		r, state, err := a.Find(own, id)
		e := entry{at: time.Now()}
		if state == Complete {
			e.record = &r
		}
		a.learn(id, e, err, state, changes)
		done <- answer{e, err}
	}()
	select {
	case got := <-done:
		return got.entry, got.err
	case <-ctx.Done():
	}
	select {
	case got := <-done: // both at once
		return got.entry, got.err
	default:
	}
	err := fmt.Errorf("look for snapshot %s: %w", id, context.Cause(ctx))
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known.failure, a.known.failedAt = err, time.Now()
	return entry{}, err
}

// changes counts what this process has done so far.
func (a *Archive) changes() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.known.changes
}

// learn keeps an answer that nothing has overtaken.
func (a *Archive) learn(id kurabe.SnapshotID, e entry, err error, state State, changes int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil && state != Partial {
		a.known.failure, a.known.failedAt = err, time.Now()
		return
	}
	a.known.failure = nil
	if err == nil && a.known.changes == changes {
		a.known.entries[id] = e
	}
}

// remember keeps what this process has done itself.
func (a *Archive) remember(id kurabe.SnapshotID, e entry) {
	e.at = time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known.changes++
	a.known.entries[id] = e
}
