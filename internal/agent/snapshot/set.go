package snapshot

import (
	"context"
	"time"

	"kurabe"
	"kurabe/internal/agent/unit"
	"kurabe/internal/engine"
	folder "kurabe/internal/snapshot"
)

// Folders makes, finds and removes the folders of snapshots. A Set never
// calls Take, Copy, Seal and Remove for one snapshot at the same time, nor two Takes of
// one instance, nor Remove while a Copy reads that snapshot.
type Folders interface {
	// Find looks at the folder of a snapshot. The facts are those of the manifest;
	// folder.Complete is one whose manifest, written last, is durable. An error means
	// that it cannot be told what is there.
	Find(id kurabe.SnapshotID) (facts kurabe.SnapshotFacts, state folder.State, err error)
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

// Logs are the continuous logs of the host, as far as snapshots go.
type Logs interface {
	// Log says what there is of one instance's.
	Log(id kurabe.InstanceID) (kurabe.InstanceLog, bool)
	// Adopt keeps the log that other hosts brought into the repository and that goes with a
	// snapshot which was imported.
	Adopt(ctx context.Context, id kurabe.InstanceID, takenAt time.Time, from kurabe.LogPosition) error
}

// Config is what a Set needs.
type Config struct {
	Host *unit.Host
	Dir  string // of the saved assignments
	// Folders makes the snapshots; nil: this host keeps none, and says so when it is to.
	Folders Folders
	Logs    Logs // nil: there are none
	// Members are the assignments in force of the servers of an instance here, by number.
	Members func(kurabe.InstanceID) []kurabe.Assignment
	// DropLog removes the log of an instance if nobody needs it any more.
	DropLog func(context.Context, kurabe.InstanceID)
	// Free tells the free bytes of the disk, a negative number when it cannot; nil: nobody can.
	Free func() int64
}

// Set has the snapshots of one host.
type Set struct {
	Config
	*unit.Table[kurabe.SnapshotID, kurabe.SnapshotAssignment, *worker]
	slots chan struct{} // holds one entry for each take or copy under way
}

// New returns a Set; Load takes up what is saved.
func New(c Config) *Set {
	s := &Set{Config: c, slots: make(chan struct{}, snapshotsAtOnce)}
	s.Table = unit.NewTable[kurabe.SnapshotID, kurabe.SnapshotAssignment](kurabe.KindSnapshot, c.Host, s.newWorker)
	return s
}

// SourceChanged tells the snapshots of an instance that an assignment of it changed. An
// instance that is to be absent loses its files any moment: what is taken of them now
// would fail in a way that nobody understands. And what is taken of a server that writes
// no more, or of a standby that commits do not wait for any more, is taken again.
func (s *Set) SourceChanged(source kurabe.Assignment) {
	owner := source.Instance.Owner()
	for _, u := range s.List() {
		have, known := u.Assignment()
		if !known || have.Of != owner || have.Goal == kurabe.SnapshotAbsent {
			continue
		}
		writer, known := s.writer(owner)
		switch {
		case known && writer.Goal == kurabe.GoalAbsent:
			u.CutStep(errSourceGone)
		case u.takes().spoiled(source):
			u.CutStep(unit.ErrCut)
		}
		u.Wake()
	}
}

// Automated lists when the automated snapshots of an instance on this host were
// taken; zero for one that is in the making.
func (s *Set) Automated(id kurabe.InstanceID) []time.Time {
	var list []time.Time
	for _, u := range s.List() {
		have, known := u.Assignment()
		if !known || have.Kind != kurabe.SnapshotAutomated || have.Source.Instance != id || have.Goal == kurabe.SnapshotAbsent {
			continue
		}
		var at time.Time
		if facts := u.whole(); facts != nil {
			at = facts.TakenAt
		}
		list = append(list, at)
	}
	return list
}

// sourceGrace is how long a snapshot waits for the assignment of its instance: they
// come over a network each on its own, and the disk may refuse one for a while.
const sourceGrace = 10 * time.Second
