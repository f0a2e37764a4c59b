package snapshot

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/engine/fake"
	"kurabe/internal/hostlink"
	folder "kurabe/internal/snapshot"
)

// What a host has can be archived.

// archivedSnapshots are fake snapshots with a fake repository.
type archivedSnapshots struct {
	*fake.Snapshots
	uploadTime time.Duration

	mu      sync.Mutex // guards the rest
	down    error
	there   map[kurabe.SnapshotID]kurabe.SnapshotFacts
	uploads int
	most    int
	busy    int
}

func (s *archivedSnapshots) Archives() bool { return true }

func (s *archivedSnapshots) Archived(id kurabe.SnapshotID) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.there[id]
	return ok && s.down == nil, s.down
}

func (s *archivedSnapshots) Find(id kurabe.SnapshotID) (kurabe.SnapshotFacts, folder.State, error) {
	facts, state, err := s.Snapshots.Find(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if there, ok := s.there[id]; ok && s.down == nil && err == nil && state != folder.Complete {
		return there, folder.Complete, nil
	}
	return facts, state, err
}

func (s *archivedSnapshots) Sealed(id kurabe.SnapshotID) (bool, error) {
	if _, state, _ := s.Snapshots.Find(id); state != folder.Complete {
		return true, nil
	}
	return s.Snapshots.Sealed(id)
}

func (s *archivedSnapshots) Archive(ctx context.Context, id kurabe.SnapshotID, _ func(done, total int64)) error {
	s.mu.Lock()
	s.busy++
	s.most = max(s.most, s.busy)
	err := s.down
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.busy--
		s.mu.Unlock()
	}()
	if err != nil {
		return err
	}
	timer := time.NewTimer(s.uploadTime)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	facts, _, _ := s.Snapshots.Find(id)
	facts.Archived, facts.OccupiedBytes = true, 0
	s.put(id, facts)
	return nil
}

func (s *archivedSnapshots) Remove(ctx context.Context, id kurabe.SnapshotID) error {
	if err := s.Snapshots.Remove(ctx, id); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down == nil {
		delete(s.there, id)
	}
	return s.down
}

func (s *archivedSnapshots) put(id kurabe.SnapshotID, facts kurabe.SnapshotFacts) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.there[id] = facts
	s.uploads++
}

func (s *archivedSnapshots) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = err
}

// withArchive runs a test on a host whose snapshots are archived.
func withArchive(t *testing.T, test func(*snapshotBed, *archivedSnapshots)) {
	t.Helper()
	inSnapshotBubble(t, func(b *snapshotBed) {
		s := &archivedSnapshots{Snapshots: b.folder, uploadTime: time.Hour, there: map[kurabe.SnapshotID]kurabe.SnapshotFacts{}}
		b.stop()
		b.keeps = s
		b.start()
		b.send(hostlink.Update{Orders: []kurabe.Word{sourceInstance("db-1", 1)}})
		test(b, s)
	})
}

// wantKept checks that a snapshot is reported as complete although it is not here.
func (b *snapshotBed) wantKept(id kurabe.SnapshotID) {
	b.Helper()
	if _, state, _ := b.folder.Find(id); state == folder.Complete {
		b.Errorf("%s is here", id)
	}
	if r := b.last(id); !r.Done || r.Absent || r.Failure != nil || !r.Facts.Archived {
		b.Errorf("%s is reported %+v, failure %+v", id, r, r.Failure)
	}
}

// A sealed snapshot is archived beside everything else: it is available long before,
// and no copy waits for the upload.
func TestSnapshotIsArchived(t *testing.T) {
	withArchive(t, func(b *snapshotBed, s *archivedSnapshots) {
		for n, id := range []kurabe.SnapshotID{"snap-1", "snap-2", "snap-3"} {
			b.order(takeOf(id, "db-1", 1))
			b.pass(101 * time.Second)
			b.wantDone(id, 1)
			if r := b.last(id); r.Facts.Archived {
				t.Errorf("%d: archived before it is", n)
			}
		}
		b.pass(3 * time.Hour)
		for _, id := range []kurabe.SnapshotID{"snap-1", "snap-2", "snap-3"} {
			if r := b.last(id); !r.Done || !r.Facts.Archived {
				t.Errorf("after its upload: %+v", r)
			}
		}
		if s.uploads != 3 || s.most != 1 {
			t.Errorf("%d uploads, %d at once", s.uploads, s.most)
		}
		b.pass(48 * time.Hour)
		if s.uploads != 3 {
			t.Errorf("%d uploads", s.uploads)
		}
		s.mu.Lock()
		delete(s.there, "snap-1") // another repository, say
		s.mu.Unlock()
		b.pass(24 * time.Hour)
		if s.uploads != 4 || !b.last("snap-1").Facts.Archived {
			t.Errorf("%d uploads, %+v", s.uploads, b.last("snap-1"))
		}
		// A removal cuts an upload, and takes both away.
		b.folder.Lose("snap-2")
		b.pass(24 * time.Hour)
		b.wantKept("snap-2")
		b.order(removalOf(takeOf("snap-2", "db-1", 1)))
		b.pass(time.Minute)
		if _, there := s.there["snap-2"]; there || !b.last("snap-2").Absent {
			t.Errorf("there %v, %+v", there, b.last("snap-2"))
		}
	})
}

// A repository that is away is no loss of what is in it, hinders no snapshot, and is
// no excuse to forget what is to be removed from it.
func TestRepositoryIsAway(t *testing.T) {
	withArchive(t, func(b *snapshotBed, s *archivedSnapshots) {
		b.order(takeOf("snap-1", "db-1", 1))
		b.pass(2 * time.Hour)
		b.folder.Lose("snap-1")
		s.fail(errors.New("unplugged"))
		b.stop()
		b.start() // nothing is remembered
		b.pass(24 * time.Hour)
		b.wantKept("snap-1")
		b.order(takeOf("snap-2", "db-1", 1))
		b.pass(101 * time.Second)
		b.wantDone("snap-2", 1)
		b.order(removalOf(takeOf("snap-1", "db-1", 1)))
		b.pass(time.Hour)
		if r := b.last("snap-1"); r.Absent || r.Failure == nil {
			t.Errorf("removed from a repository that is away: %+v", r)
		}
		s.fail(nil)
		b.pass(24 * time.Hour)
		if r := b.last("snap-1"); !r.Absent || len(s.there) != 1 || !b.last("snap-2").Facts.Archived {
			t.Errorf("once it is back: %+v, %+v, %v", r, b.last("snap-2"), s.there)
		}
	})
}

// An imported snapshot is looked for and never taken.
func TestImportedSnapshotIsFound(t *testing.T) {
	withArchive(t, func(b *snapshotBed, s *archivedSnapshots) {
		a := takeOf("snap-1", "", 1)
		s.fail(errors.New("unplugged"))
		b.order(a)
		b.pass(time.Hour)
		b.wantFailure("snap-1", stepFindSnapshot, "unplugged")
		s.fail(nil)
		b.pass(time.Hour)
		b.wantFailure("snap-1", stepFindSnapshot, "neither on this host nor in its backup repository")
		s.put("snap-1", kurabe.SnapshotFacts{SizeBytes: fake.SnapshotBytes, Percent: 100, Archived: true})
		b.pass(time.Hour)
		b.wantKept("snap-1")
		if n := b.folder.Taken("snap-1"); n != 0 {
			t.Errorf("taken %d times", n)
		}
	})
}
