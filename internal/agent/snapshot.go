package agent

import (
	"context"
	"sync"
	"time"

	"kurabe"
	"kurabe/internal/hostlink"
	"kurabe/internal/logkey"
	"kurabe/internal/snapshot"
)

// Snapshots makes, finds and removes the folders of snapshots. The agent never
// calls Take, Copy, Seal and Remove for one snapshot at the same time, nor two Takes of
// one instance, nor Remove while a Copy reads that snapshot.
type Snapshots interface {
	// Find looks at the folder of a snapshot. The facts are those of the manifest;
	// snapshot.Complete is one whose manifest, written last, is durable. An error means
	// that it cannot be told what is there.
	Find(id kurabe.SnapshotID) (facts kurabe.SnapshotFacts, state snapshot.State, err error)
	// Take makes the snapshot of the instance as its saved assignment says; progress
	// may be called from any goroutine with the bytes done and in total. It is
	// idempotent: what an earlier try left is removed first. When it returns without
	// error, the folder is complete. When ctx ends it returns soon.
	Take(ctx context.Context, a kurabe.SnapshotAssignment, of kurabe.Assignment, progress func(done, total int64)) (kurabe.SnapshotFacts, error)
	// Copy makes a snapshot out of another one on this host, under the same terms.
	Copy(ctx context.Context, a kurabe.SnapshotAssignment, progress func(done, total int64)) (kurabe.SnapshotFacts, error)
	// Sealed says whether the checksums of a complete snapshot are on record; Seal
	// reads it and records them. It changes nothing else, and may be cut off.
	Sealed(id kurabe.SnapshotID) (bool, error)
	Seal(ctx context.Context, id kurabe.SnapshotID) error
	// Remove leaves nothing of a snapshot; removing an absent one is no error.
	Remove(ctx context.Context, id kurabe.SnapshotID) error
}

// The steps of a snapshot, by which tests end the service.
const (
	stepTakeSnapshot   = "take-snapshot"
	stepCopySnapshot   = "copy-snapshot"
	stepSealSnapshot   = "seal-snapshot"
	stepRemoveSnapshot = "remove-snapshot"
	stepFindSnapshot   = "find-snapshot" // no deed: a failure to see
)

// snapshotsAtOnce bounds the takes and copies under way on one host: two keep a
// disk busy, and each that is added slows down the databases beside it.
const snapshotsAtOnce = 2

// snapshotUnits are the snapshots of one host.
type snapshotUnits struct {
	slots chan struct{} // holds one entry for each take or copy under way
	lines lines

	mu    sync.Mutex // guards units
	units map[kurabe.SnapshotID]*snapshotUnit
}

func newSnapshotUnits() *snapshotUnits {
	return &snapshotUnits{
		slots: make(chan struct{}, snapshotsAtOnce), lines: lines{waiting: map[string]*line{}},
		units: map[kurabe.SnapshotID]*snapshotUnit{},
	}
}

// list returns the units of the moment.
func (s *snapshotUnits) list() []*snapshotUnit {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*snapshotUnit, 0, len(s.units))
	for _, u := range s.units {
		list = append(list, u)
	}
	return list
}

// snapshot returns the unit of a snapshot and starts it at first.
func (a *Agent) snapshot(ctx context.Context, id kurabe.SnapshotID) *snapshotUnit {
	s := a.snapshots
	s.mu.Lock()
	defer s.mu.Unlock()
	if u, ok := s.units[id]; ok {
		return u
	}
	u := newSnapshotUnit(a, id)
	s.units[id] = u
	a.wait.Add(1)
	go func() {
		defer a.wait.Done()
		u.run(ctx)
	}()
	return u
}

// obeySnapshots is what an update says of snapshots. Instances come first: a
// snapshot is taken of one as its assignment says.
func (a *Agent) obeySnapshots(ctx context.Context, update hostlink.Update) {
	if update.Full {
		named := map[kurabe.SnapshotID]bool{}
		for _, s := range update.Snapshots {
			named[s.Snapshot] = true
		}
		for _, u := range a.snapshots.list() {
			if !named[u.id] {
				a.withdrawSnapshot(ctx, u.id)
			}
		}
	}
	for _, s := range update.Snapshots {
		a.takeSnapshot(ctx, s)
	}
	for _, id := range update.WithdrawnSnapshots {
		a.withdrawSnapshot(ctx, id)
	}
}

// takeSnapshot saves an assignment, unless it is stale, and wakes its unit.
func (a *Agent) takeSnapshot(ctx context.Context, s kurabe.SnapshotAssignment) {
	u := a.snapshot(ctx, s.Snapshot)
	log := a.Log.With(logkey.Snapshot, s.Snapshot, logkey.Generation, s.Generation)
	if have, known := u.newest(); known {
		fresh, err := newerSnapshot(have, s)
		if err != nil {
			log.Warn("assignment refused", logkey.Error, err)
			return
		}
		if !fresh {
			u.wake()
			return
		}
	}
	if err := u.accept(s); err != nil {
		log.Error("assignment not saved", logkey.Error, err)
		u.wake()
	}
}

// withdrawSnapshot forgets a snapshot whose records are gone. As with instances,
// data goes only by an order.
func (a *Agent) withdrawSnapshot(ctx context.Context, id kurabe.SnapshotID) {
	u := a.snapshot(ctx, id)
	if have, known := u.assignment(); known && have.Goal != kurabe.SnapshotAbsent {
		a.Log.Warn("assignment withdrawn without an order to remove the snapshot; it is kept", logkey.Snapshot, id)
		return
	}
	u.retire()
}

// sourceChanged tells the snapshots of an instance that an assignment of it changed. An
// instance that is to be absent loses its files any moment: what is taken of them now
// would fail in a way that nobody understands. And what is taken of a server that writes
// no more, or of a standby that commits do not wait for any more, is taken again.
func (a *Agent) sourceChanged(source kurabe.Assignment) {
	owner := source.Instance.Owner()
	for _, u := range a.snapshots.list() {
		have, known := u.assignment()
		if !known || have.Of != owner || have.Goal == kurabe.SnapshotAbsent {
			continue
		}
		writer, known := a.writer(owner)
		switch {
		case known && writer.Goal == kurabe.GoalAbsent:
			u.cutStep(errSourceGone)
		case u.takes().spoiled(source):
			u.cutStep(errCut)
		}
		u.wake()
	}
}

// line is who waits for one thing; turn holds one entry while somebody has it.
type line struct {
	turn  chan struct{}
	users int
}

// lines let those in one after the other that ask for the same thing.
type lines struct {
	mu      sync.Mutex // guards waiting
	waiting map[string]*line
}

// enter waits for the turn; leave gives it to the next. The error is the reason
// that ctx gives.
func (l *lines) enter(ctx context.Context, thing string) (leave func(), err error) {
	l.mu.Lock()
	q, ok := l.waiting[thing]
	if !ok {
		q = &line{turn: make(chan struct{}, 1)}
		l.waiting[thing] = q
	}
	q.users++
	l.mu.Unlock()
	drop := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if q.users--; q.users == 0 {
			delete(l.waiting, thing)
		}
	}
	select {
	case q.turn <- struct{}{}:
		return func() { <-q.turn; drop() }, nil
	case <-ctx.Done():
		drop()
		return nil, context.Cause(ctx)
	}
}

// sourceGrace is how long a snapshot waits for the assignment of its instance: they
// come over a network each on its own, and the disk may refuse one for a while.
const sourceGrace = 10 * time.Second
