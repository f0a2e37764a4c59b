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

// occupiedShare: a look at what a snapshot occupies takes a twentieth of one core, and
// of the disk's time where the file system has to read its extents.
const occupiedShare = 20

// Occupied is what removing a snapshot would free by now, in bytes, 0 for one that is
// in the archive only: a clone comes to own the blocks that its source no longer has,
// and shares them with what is restored from it. It looks at each extent, slowly.
func (s *Snapshots) Occupied(ctx context.Context, id kurabe.SnapshotID) (int64, error) {
	if s.onlyArchived(id) {
		return 0, nil
	}
	return volume.OwnBytesSlowly(ctx, s.store.Path(id), occupiedShare)
}
