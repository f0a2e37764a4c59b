package agent

import (
	"context"
	"sync"
	"time"

	"kurabe"
	"kurabe/internal/agent/unit"
	"kurabe/internal/engine"
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
	// TakeStandby is Take of a running standby of the server that writes, whose assignment is
	// of; an error says nothing against Take. TakeFar is that where the server that writes is
	// on another host.
	TakeStandby(ctx context.Context, a kurabe.SnapshotAssignment, of, standby kurabe.Assignment, progress func(done, total int64)) (kurabe.SnapshotFacts, error)
	TakeFar(ctx context.Context, a kurabe.SnapshotAssignment, standby kurabe.Assignment, progress func(done, total int64)) (kurabe.SnapshotFacts, error)
	// Copy makes a snapshot out of another one on this host, under the same terms.
	Copy(ctx context.Context, a kurabe.SnapshotAssignment, progress func(done, total int64)) (kurabe.SnapshotFacts, error)
	// Sealed says whether the checksums of a complete snapshot are on record; Seal
	// reads it and records them. It changes nothing else, and may be cut off.
	Sealed(id kurabe.SnapshotID) (bool, error)
	Seal(ctx context.Context, id kurabe.SnapshotID) error
	// Archives says whether there is a repository of backups in which snapshots are kept too.
	// Find and Remove then speak of both, and Copy reads from either.
	Archives() bool
	// Archived says whether the snapshot is complete in the repository; the error says
	// that this cannot be told just now. It answers from memory or soon.
	Archived(id kurabe.SnapshotID) (bool, error)
	// Archive brings a complete, sealed snapshot there. It may be cut off and repeated,
	// and goes on with what is missing. It runs beside a Copy of the same snapshot.
	Archive(ctx context.Context, id kurabe.SnapshotID, progress func(done, total int64)) error
	// Verify looks for damage in a complete snapshot. Damage is a result; an error says
	// what hindered. It may be cut off and repeated, leaves nothing behind, and is
	// called once at a time.
	Verify(ctx context.Context, r engine.VerifyRequest) (kurabe.Verification, error)
	// SweepVerified removes what killed verifications left, before the first Verify.
	SweepVerified(ctx context.Context) error
	// Occupied is what removing a snapshot would free, in bytes, 0 for one without a
	// folder here. It may run beside everything else, works slowly, and ends soon after
	// ctx.
	Occupied(ctx context.Context, id kurabe.SnapshotID) (int64, error)
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
	*unit.Table[kurabe.SnapshotID, kurabe.SnapshotAssignment, *snapshotUnit]
	slots chan struct{} // holds one entry for each take or copy under way
	lines lines
}

func newSnapshotUnits(a *Agent) *snapshotUnits {
	return &snapshotUnits{
		unit.NewTable[kurabe.SnapshotID, kurabe.SnapshotAssignment](kurabe.KindSnapshot, a.host, a.newSnapshotUnit),
		make(chan struct{}, snapshotsAtOnce), lines{waiting: map[string]*line{}},
	}
}

// sourceChanged tells the snapshots of an instance that an assignment of it changed. An
// instance that is to be absent loses its files any moment: what is taken of them now
// would fail in a way that nobody understands. And what is taken of a server that writes
// no more, or of a standby that commits do not wait for any more, is taken again.
func (a *Agent) sourceChanged(source kurabe.Assignment) {
	owner := source.Instance.Owner()
	for _, u := range a.snapshots.List() {
		have, known := u.Assignment()
		if !known || have.Of != owner || have.Goal == kurabe.SnapshotAbsent {
			continue
		}
		writer, known := a.writer(owner)
		switch {
		case known && writer.Goal == kurabe.GoalAbsent:
			u.CutStep(errSourceGone)
		case u.takes().spoiled(source):
			u.CutStep(unit.ErrCut)
		}
		u.Wake()
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
