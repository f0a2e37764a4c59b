package engine

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"

	"kurabe"
	"kurabe/internal/snapshot"
	"kurabe/internal/volume"
)

// Snapshots takes, copies and removes the snapshots of a host, of all its engines.
// It keeps no state: what is complete, the folders say. One call at a time acts on
// one snapshot; calls for different ones may run beside each other.
type Snapshots struct {
	store   snapshot.Store
	archive *snapshot.Archive // nil: snapshots are in their folder only
	engines map[kurabe.EngineName]*Lifecycle
	// BytesPerSecondMax bounds each copy, 0 does not.
	BytesPerSecondMax int64
}

// NewSnapshots returns those below dir, the Snapshots of every lifecycle's Config.
func NewSnapshots(dir string, engines ...*Lifecycle) *Snapshots {
	s := &Snapshots{store: snapshot.Store{Dir: dir}, engines: map[kurabe.EngineName]*Lifecycle{}}
	for _, l := range engines {
		s.engines[l.c.Driver.Name()] = l
	}
	return s
}

// Find says what is here of a snapshot, and of a complete one what it is. One that
// is only in the archive is complete as well, as far as is known of it.
func (s *Snapshots) Find(id kurabe.SnapshotID) (kurabe.SnapshotFacts, snapshot.State, error) {
	r, state, err := s.store.Find(id)
	if err != nil || state == snapshot.Complete || s.archive == nil {
		return r.Facts, state, err
	}
	// An archive that does not answer holds up nothing that can be done here.
	if there, ok, err := s.archive.Known(id); err == nil && ok {
		return archivedFacts(there), snapshot.Complete, nil
	}
	return r.Facts, state, nil
}

// Copy makes a snapshot of another one, which stays as it is. Content that has a sum
// is compared with it on the way.
func (s *Snapshots) Copy(ctx context.Context, a kurabe.SnapshotAssignment, progress func(done, total int64)) (kurabe.SnapshotFacts, error) {
	if r, state, err := s.store.Find(a.Snapshot); err != nil || state == snapshot.Complete {
		return r.Facts, err
	}
	facts, err := s.copy(ctx, a, progress)
	if err != nil {
		return kurabe.SnapshotFacts{}, fmt.Errorf("copy snapshot %s: %w", a.From, errors.Join(err, s.discard(a.Snapshot)))
	}
	return facts, nil
}

func (s *Snapshots) copy(ctx context.Context, a kurabe.SnapshotAssignment, progress func(done, total int64)) (kurabe.SnapshotFacts, error) {
	from, err := openSource(ctx, s.store, s.archive, a.From)
	if err != nil {
		return kurabe.SnapshotFacts{}, err
	}
	if err := s.store.Begin(a.Snapshot); err != nil {
		return kurabe.SnapshotFacts{}, err
	}
	files, cloned, err := from.copyTo(ctx, s.store.Data(a.Snapshot), volume.TransferOptions{
		BytesPerSecondMax: s.BytesPerSecondMax, Progress: progress,
	})
	if err != nil {
		return kurabe.SnapshotFacts{}, err
	}
	r := from.record
	r.Snapshot, r.Name, r.Source, r.Facts.Method, r.Facts.Archived = a.Snapshot, a.Name, a.Source, Method(cloned), false
	r.Kind, r.Tags = a.Kind, a.Tags
	return s.store.Finish(r, files)
}

// Remove removes whatever there is of a snapshot, here and in the archive; nothing
// is no error. While the archive does not answer it fails once the disk here is free.
func (s *Snapshots) Remove(ctx context.Context, id kurabe.SnapshotID) error {
	if err := s.store.Remove(id); err != nil || s.archive == nil {
		return err
	}
	return s.archive.Remove(ctx, id)
}

// Sealed says whether every file of a snapshot has its checksum on record.
func (s *Snapshots) Sealed(id kurabe.SnapshotID) (bool, error) {
	if s.onlyArchived(id) {
		return true, nil // nothing else is archived
	}
	r, err := s.store.Open(id)
	return r.Sealed, err
}

// Seal reads a complete snapshot that was cloned, or made by the engine's own tool,
// and puts the checksums of its files on record. It may be cut off and repeated.
func (s *Snapshots) Seal(ctx context.Context, id kurabe.SnapshotID) error {
	r, err := s.store.Open(id)
	if err != nil || r.Sealed {
		return err
	}
	l, ok := s.engines[r.Engine]
	if !ok {
		return fmt.Errorf("seal snapshot %s: engine %s is not offered by this host", id, r.Engine)
	}
	files, err := s.store.Check(r)
	if err != nil {
		return err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		volume.GiveWay()
		if err = s.unshare(ctx, id, files, l.c.Driver.Rewritten()); err != nil {
			err = fmt.Errorf("seal snapshot %s: %w", id, err)
			return
		}
		files, err = s.store.Sum(ctx, id, files, s.sealRate())
	}()
	<-done
	if err != nil {
		return err
	}
	if err := l.c.Driver.Seal(filepath.Clean(s.store.Data(id)), files); err != nil {
		return fmt.Errorf("seal snapshot %s: %w", id, err)
	}
	return s.store.Seal(r, files)
}

// unshare ends the sharing of blocks that the server would write over. It is done
// again after a death.
func (s *Snapshots) unshare(ctx context.Context, id kurabe.SnapshotID, files []volume.File, patterns []string) error {
	var err error
	pace := volume.NewPace(s.sealRate())
	for _, f := range files {
		for _, pattern := range patterns {
			if match, _ := path.Match(pattern, f.Path); match && !f.Summed {
				err = errors.Join(err, volume.Unshare(ctx, filepath.Join(s.store.Data(id), f.Path), pace))
			}
		}
	}
	return err
}

// sealRate is that of reading a clone for its checksums, in bytes a second. Nobody
// waits for them but an upload: otherwise it is a share of what a copy may take, so
// that clients notice an instant snapshot no longer than it took.
func (s *Snapshots) sealRate() int64 {
	const share = 4
	if s.archive != nil {
		return s.BytesPerSecondMax
	}
	return s.BytesPerSecondMax / share
}

// discard removes what a failed call left; one that was complete is never here.
func (s *Snapshots) discard(id kurabe.SnapshotID) error {
	if _, state, err := s.store.Find(id); err != nil || state == snapshot.Complete {
		return err
	}
	return s.store.Remove(id)
}
