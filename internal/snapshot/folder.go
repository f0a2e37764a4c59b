package snapshot

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"

	"kurabe"
	"kurabe/internal/volume"
)

// The names in a snapshot's folder.
const (
	dataName   = "data"
	recordName = "snapshot.json"
)

// formatNewest is what this program writes; it refuses a later one rather than
// misread it.
const formatNewest = 1

// State is what a host has of a snapshot. An alias, so that who asks need not know this room.
type State = string

// The states. Partial is what a cut-off copy or removal left: to remove, or to begin
// again.
const (
	Absent   State = "absent"
	Partial  State = "partial"
	Complete State = "complete"
)

// Record is snapshot.json. It is enough to restore from after the service has lost
// all its own records.
type Record struct {
	Format   int                   `json:"format"`
	Snapshot kurabe.SnapshotID     `json:"snapshot"`
	Name     string                `json:"name"`
	Engine   kurabe.EngineName     `json:"engine"`
	Family   string                `json:"family"` // engine and major: what can start on the files
	Source   kurabe.SnapshotSource `json:"source"`
	Facts    kurabe.SnapshotFacts  `json:"facts"`
	// Kind and Tags are those that it was taken with; "" and nil in what earlier
	// programs wrote.
	Kind kurabe.SnapshotKind `json:"kind,omitempty"`
	Tags []kurabe.Tag        `json:"tags,omitempty"`
	// Sealed says that every file has its sum. A clone is sealed later, because
	// reading it all would take what cloning saves.
	Sealed  bool   `json:"sealed"`
	Files   int    `json:"files"`
	ListSum string `json:"listSum"` // SHA-256 of the list, and its name
}

// Store is the folder of all snapshots of a host.
type Store struct{ Dir string }

// idForm keeps an id from being a path.
var idForm = regexp.MustCompile(`^snap-[a-z0-9]{1,64}$`)

// ErrMissing is a snapshot that is not here, or not complete.
var ErrMissing = errors.New("the snapshot is not complete on this host")

// Path is the folder of one snapshot.
func (s Store) Path(id kurabe.SnapshotID) string { return filepath.Join(s.Dir, string(id)) }

// Data is the copied data folder in it.
func (s Store) Data(id kurabe.SnapshotID) string { return filepath.Join(s.Path(id), dataName) }

// Find says what is here. An error means that something is and cannot be read: a
// person must look.
func (s Store) Find(id kurabe.SnapshotID) (Record, State, error) {
	if !idForm.MatchString(string(id)) {
		return Record{}, Absent, fmt.Errorf("invalid snapshot id %q", id)
	}
	raw, err := volume.ReadFile(filepath.Join(s.Path(id), recordName))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := volume.Lstat(s.Path(id)); errors.Is(err, fs.ErrNotExist) {
			return Record{}, Absent, nil
		}
		return Record{}, Partial, nil
	}
	var r Record
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	if err == nil && (r.Format < 1 || r.Format > formatNewest) {
		err = fmt.Errorf("its format is %d, this program knows up to %d", r.Format, formatNewest)
	}
	if err == nil && r.Snapshot != id {
		err = fmt.Errorf("it belongs to %q", r.Snapshot)
	}
	if err != nil {
		return Record{}, Partial, fmt.Errorf("read the record of snapshot %s: %w", id, err)
	}
	return r, Complete, nil
}

// Open is Find for one that must be complete.
func (s Store) Open(id kurabe.SnapshotID) (Record, error) {
	r, state, err := s.Find(id)
	if err == nil && state != Complete {
		err = fmt.Errorf("%s: %w", id, ErrMissing)
	}
	return r, err
}

// Begin makes an empty folder for a snapshot; what an earlier try left goes. The
// copy then goes to Data, which does not exist.
func (s Store) Begin(id kurabe.SnapshotID) error {
	if _, state, err := s.Find(id); err != nil || state == Complete {
		return errors.Join(err, errIf(state == Complete, "snapshot %s is complete already", id))
	}
	if err := s.Remove(id); err != nil {
		return err
	}
	// The folder of all may be on a disk of its own that is not mounted, so it is
	// made, but its parents are not.
	if err := volume.Mkdir(s.Dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make folder of snapshots: %w", err)
	}
	if err := volume.Mkdir(s.Path(id), 0o700); err != nil {
		return fmt.Errorf("make folder of snapshot: %w", err)
	}
	return nil
}

// Finish makes a snapshot complete: everything is on the disk before the record is.
// The sizes of the facts are measured here.
func (s Store) Finish(r Record, files []volume.File) (kurabe.SnapshotFacts, error) {
	if err := volume.SyncTransferred(s.Data(r.Snapshot), files); err != nil {
		return r.Facts, fmt.Errorf("make snapshot %s last: %w", r.Snapshot, err)
	}
	occupied, err := volume.OwnBytes(s.Path(r.Snapshot))
	if err != nil {
		return r.Facts, fmt.Errorf("measure snapshot %s: %w", r.Snapshot, err)
	}
	r.Format = formatNewest
	r.Facts.SizeBytes, r.Facts.OccupiedBytes, r.Facts.Percent = Size(files), occupied, 100
	if err := s.write(r, files); err != nil {
		return r.Facts, err
	}
	return r.Facts, volume.SyncDir(s.Dir)
}

// write writes the list, then the record that names it.
func (s Store) write(r Record, files []volume.File) error {
	sum, err := s.writeList(r.Snapshot, files)
	if err != nil {
		return err
	}
	r.ListSum, r.Files, r.Sealed = sum, len(files), sealed(files)
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("write the record of snapshot %s: %w", r.Snapshot, err)
	}
	return volume.AtomicWrite(filepath.Join(s.Path(r.Snapshot), recordName), append(raw, '\n'), 0o600)
}

// Remove removes whatever there is of a snapshot. The record goes first, so that a
// death in the middle leaves nothing that Find calls complete.
func (s Store) Remove(id kurabe.SnapshotID) error {
	if !idForm.MatchString(string(id)) {
		return fmt.Errorf("invalid snapshot id %q", id)
	}
	dir := s.Path(id)
	if _, err := volume.Lstat(dir); err == nil {
		err := volume.Remove(filepath.Join(dir, recordName))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove snapshot %s: %w", id, err)
		}
		if err := volume.SyncDir(dir); err != nil {
			return fmt.Errorf("remove snapshot %s: %w", id, err)
		}
	}
	if _, err := volume.Lstat(s.Dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	// One that was cut off while it was removed has a name of its own.
	for _, path := range []string{dir + ".removed.tmp", dir} {
		if err := volume.RemoveTree(s.Dir, path); err != nil {
			return fmt.Errorf("remove snapshot %s: %w", id, err)
		}
	}
	return nil
}

func errIf(when bool, format string, args ...any) error {
	if when {
		return fmt.Errorf(format, args...)
	}
	return nil
}
