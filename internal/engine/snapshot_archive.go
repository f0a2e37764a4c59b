package engine

import (
	"context"
	"fmt"
	"path/filepath"

	"kurabe"
	"kurabe/internal/snapshot"
	"kurabe/internal/volume"
)

// UseArchive has snapshots kept in a repository of backups too, and restored from
// there when their folder is not here. It is called before anything else is.
func (s *Snapshots) UseArchive(a *snapshot.Archive) {
	s.archive = a
	for _, l := range s.engines {
		l.archive = a
	}
}

// Archives says whether there is an archive at all.
func (s *Snapshots) Archives() bool { return s.archive != nil }

// Archived says whether a snapshot is complete in the archive, from memory or after
// a short look; the error says that this cannot be told just now. Without an archive
// none is.
func (s *Snapshots) Archived(id kurabe.SnapshotID) (bool, error) {
	if s.archive == nil {
		return false, nil
	}
	_, ok, err := s.archive.Known(id)
	return ok, err
}

// Archive brings a complete, sealed snapshot into the archive. It reads at no more
// than BytesPerSecondMax, and may be cut off and repeated.
func (s *Snapshots) Archive(ctx context.Context, id kurabe.SnapshotID, progress func(done, total int64)) error {
	if s.archive == nil {
		return fmt.Errorf("archive snapshot %s: this host has no repository for snapshots", id)
	}
	return s.archive.Push(ctx, id, progress)
}

// onlyArchived says whether a snapshot is known to be in the archive and is not here.
func (s *Snapshots) onlyArchived(id kurabe.SnapshotID) bool {
	if s.archive == nil {
		return false
	}
	if _, state, err := s.store.Find(id); err != nil || state == snapshot.Complete {
		return false
	}
	_, ok, err := s.archive.Known(id)
	return err == nil && ok
}

// archivedFacts are those of a snapshot that takes no space here.
func archivedFacts(r snapshot.Record) kurabe.SnapshotFacts {
	facts := r.Facts
	facts.OccupiedBytes, facts.Archived = 0, true
	return facts
}

// snapshotSource is where a complete snapshot is read: its folder, or the archive.
type snapshotSource struct {
	record  snapshot.Record
	store   snapshot.Store
	archive *snapshot.Archive // nil: the folder
}

// openSource finds a complete snapshot. The archive is asked only when the folder is
// not there.
func openSource(ctx context.Context, store snapshot.Store, archive *snapshot.Archive, id kurabe.SnapshotID) (snapshotSource, error) {
	r, state, err := store.Find(id)
	if err != nil || state == snapshot.Complete {
		return snapshotSource{record: r, store: store}, err
	}
	if archive == nil {
		return snapshotSource{}, fmt.Errorf("%s: %w", id, snapshot.ErrMissing)
	}
	if r, state, err = archive.Find(ctx, id); err != nil {
		return snapshotSource{}, fmt.Errorf("%s: %w: %w", id, snapshot.ErrMissing, err)
	}
	if state == snapshot.Complete {
		return snapshotSource{record: r, archive: archive}, nil
	}
	err = fmt.Errorf("%w, and %w", snapshot.ErrMissing, snapshot.ErrNotArchived)
	// Without the folder of all snapshots its disk may only not be mounted yet.
	if _, gone := volume.Lstat(store.Dir); gone == nil {
		err = &snapshot.DamagedError{Snapshot: id, Err: err}
	}
	return snapshotSource{}, fmt.Errorf("%s: %w", id, err)
}

// copyTo copies or clones its data folder, after a look at the room for it.
func (s snapshotSource) copyTo(ctx context.Context, dst string, opts volume.TransferOptions) ([]volume.File, bool, error) {
	if s.archive == nil {
		if err := roomToCopy(s.store.Data(s.record.Snapshot), dst); err != nil {
			return nil, false, err
		}
		return s.store.Transfer(ctx, s.record, dst, opts)
	}
	if err := NeedRoom(filepath.Dir(dst), s.record.Facts.SizeBytes); err != nil {
		return nil, false, err
	}
	_, files, err := s.archive.Fetch(ctx, s.record.Snapshot, dst, opts)
	return files, false, err
}
