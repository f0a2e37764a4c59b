package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sync"

	"kurabe"
	"kurabe/internal/blob"
)

// Archive keeps complete, sealed snapshots in a repository of backups:
//
//	snapshots/ID/packs.json      first: which files go into which pack
//	snapshots/ID/pack-00001.tar  … the data folder, as paths, modes and content
//	snapshots/ID/files-SUM.json  the list, as in the folder of the snapshot
//	snapshots/ID/snapshot.json   last: the record, without which nothing counts
//
// A pack that is there was written as packs.json says, and each file in it had its
// sum: so a Push that was cut off goes on with the packs that are missing. All
// methods may be called at the same time, but for Push and Remove of one snapshot.
type Archive struct {
	local      Store
	repository func() (blob.Store, error)

	// BytesPerSecondMax bounds the reading of each Push, 0 does not; PackBytes is
	// about how much goes into one pack, 0 for packBytes.
	BytesPerSecondMax int64
	PackBytes         int64

	turn chan struct{} // holds an entry for each who asks for Known

	mu    sync.Mutex // guards known
	known known
}

// NewArchive keeps the snapshots of a folder in the repository that the function
// gives, or says why there is none just now. It is asked by each call.
func NewArchive(local Store, repository func() (blob.Store, error)) *Archive {
	return &Archive{local: local, repository: repository, turn: make(chan struct{}, looksAtOnce), known: known{entries: map[kurabe.SnapshotID]entry{}}}
}

const (
	// packBytes is where small files are cut into packs: large enough that a store's
	// price of an object does not count, small enough to lose little when cut off.
	packBytes = 64 << 20
	// packsAtOnce keeps a core and a connection busy while another waits.
	packsAtOnce = 2
	// archiveReadBytes is one read: small enough that pacing and cancelling are prompt.
	archiveReadBytes = 1 << 20

	// Bounds of what is read into memory, whatever a repository holds. A file takes
	// some 100 bytes of the list and of packs.json: a million of them fit.
	recordBytesMax = 1 << 20
	listBytesMax   = 256 << 20
)

// ErrNotArchived is a snapshot that is not in the repository, or not completely.
var ErrNotArchived = errors.New("the snapshot is not in the repository of backups")

// ErrNotSealed is a snapshot whose checksums are not on record yet: what could not
// be checked is not archived.
var ErrNotSealed = errors.New("its checksums are not on record yet")

const (
	archivePrefix = "snapshots/"
	layoutName    = "packs.json"
)

func objectOf(id kurabe.SnapshotID, name string) string {
	return archivePrefix + string(id) + "/" + name
}

func packName(n int) string { return fmt.Sprintf("pack-%05d.tar", n+1) }

// Find looks into the repository. An error with Partial is one of this snapshot's
// record, which cannot be read; any other is one of the repository.
func (a *Archive) Find(ctx context.Context, id kurabe.SnapshotID) (Record, State, error) {
	store, err := a.repository()
	if err != nil {
		return Record{}, Absent, fmt.Errorf("look for snapshot %s in the repository of backups: %w", id, err)
	}
	return findArchived(ctx, store, id)
}

func findArchived(ctx context.Context, store blob.Store, id kurabe.SnapshotID) (Record, State, error) {
	if !idForm.MatchString(string(id)) {
		return Record{}, Absent, fmt.Errorf("invalid snapshot id %q", id)
	}
	raw, err := readObject(ctx, store, objectOf(id, recordName), recordBytesMax)
	if errors.Is(err, blob.ErrNotFound) {
		return Record{}, Absent, nil
	}
	var r Record
	if err == nil {
		if r, err = parseArchived(raw, id); err == nil {
			return r, Complete, nil
		}
	}
	state := Absent // of a repository that does not answer nothing is known
	if err = judge(id, err); isDamage(err) || errors.Is(err, errNewer) {
		state = Partial
	}
	return Record{}, state, fmt.Errorf("read the archived record of snapshot %s: %w", id, err)
}

// errNewer is a record that a later program wrote.
var errNewer = errors.New("its format is newer than this program")

var sumForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

// parseArchived reads a record that anybody may have written.
func parseArchived(raw []byte, id kurabe.SnapshotID) (Record, error) {
	var r Record
	if err := json.Unmarshal(raw, &r); err != nil {
		return r, notAsWritten{err}
	}
	switch {
	case r.Format > formatNewest:
		return r, fmt.Errorf("its format is %d, this program knows up to %d: %w", r.Format, formatNewest, errNewer)
	case r.Format < 1:
		return r, wrong("its format is %d", r.Format)
	case r.Snapshot != id:
		return r, wrong("it belongs to %q", r.Snapshot)
	case !r.Sealed || !sumForm.MatchString(r.ListSum):
		return r, wrong("it names no list of files with checksums")
	}
	return r, nil
}

// readObject reads a small object to its end.
func readObject(ctx context.Context, store blob.Store, name string, most int64) ([]byte, error) {
	in, err := store.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	raw, err := io.ReadAll(io.LimitReader(in, most+1))
	if err == nil && int64(len(raw)) > most {
		err = wrong("%s is larger than its bound of %s", name, kurabe.FormatBytes(most))
	}
	return raw, err
}

// Remove removes whatever there is of a snapshot; nothing is no error. The record
// goes first, so that a death in the middle leaves nothing that Find calls complete.
func (a *Archive) Remove(ctx context.Context, id kurabe.SnapshotID) error {
	if !idForm.MatchString(string(id)) {
		return fmt.Errorf("invalid snapshot id %q", id)
	}
	store, err := a.repository()
	if err == nil {
		err = store.Delete(ctx, objectOf(id, recordName))
	}
	if err == nil {
		a.remember(id, entry{})
		err = removeObjects(ctx, store, id)
	}
	if err != nil {
		return fmt.Errorf("remove snapshot %s from the repository of backups: %w", id, err)
	}
	return nil
}

// removeObjects removes what is there beside a record. The order of names has
// packs.json after the packs: while one of those is there, so is what it follows.
func removeObjects(ctx context.Context, store blob.Store, id kurabe.SnapshotID) error {
	for info, err := range store.List(ctx, objectOf(id, "")) {
		if err == nil {
			err = store.Delete(ctx, info.Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
