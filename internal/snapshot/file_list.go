package snapshot

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"kurabe"
	"kurabe/internal/volume"
)

func listName(sum string) string { return "files-" + sum + ".json" }

// writeList gives the list a name that follows from its content: a record never
// names a list that is half another's.
func (s Store) writeList(id kurabe.SnapshotID, files []volume.File) (string, error) {
	raw, err := json.Marshal(files)
	if err != nil {
		return "", fmt.Errorf("write the list of snapshot %s: %w", id, err)
	}
	sum := sha256.Sum256(raw)
	name := hex.EncodeToString(sum[:])
	return name, volume.AtomicWrite(filepath.Join(s.Path(id), listName(name)), raw, 0o600)
}

// List returns the files of a snapshot as they were when it was complete.
func (s Store) List(r Record) ([]volume.File, error) {
	raw, err := volume.ReadFile(filepath.Join(s.Path(r.Snapshot), listName(r.ListSum)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, damaged(r.Snapshot, "the list of its files is missing")
	}
	if err != nil {
		return nil, fmt.Errorf("read the list of snapshot %s: %w", r.Snapshot, err)
	}
	if sum := sha256.Sum256(raw); hex.EncodeToString(sum[:]) != r.ListSum {
		return nil, damaged(r.Snapshot, "the list of its files differs from the one that was written")
	}
	var files []volume.File
	if err := json.Unmarshal(raw, &files); err != nil {
		return nil, fmt.Errorf("read the list of snapshot %s: %w", r.Snapshot, err)
	}
	return files, nil
}

// Check compares every file with the list: that it is there, a plain file, and of
// its size. It reads no content, so its price does not grow with the data.
func (s Store) Check(r Record) ([]volume.File, error) {
	files, err := s.List(r)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if !filepath.IsLocal(f.Path) {
			return nil, damaged(r.Snapshot, "its list names %q", f.Path)
		}
		info, err := volume.Lstat(filepath.Join(s.Data(r.Snapshot), f.Path))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, damaged(r.Snapshot, "file %s is missing", f.Path)
		case err != nil:
			return nil, fmt.Errorf("check snapshot %s: %w", r.Snapshot, err)
		case !info.Mode().IsRegular() || info.Size() != f.Size:
			return nil, damaged(r.Snapshot, "file %s has %d bytes, and had %d", f.Path, info.Size(), f.Size)
		}
	}
	return files, nil
}

func sealed(files []volume.File) bool {
	return !slices.ContainsFunc(files, func(f volume.File) bool { return !f.Summed })
}

// Size is the length of all files.
func Size(files []volume.File) int64 {
	var sum int64
	for _, f := range files {
		sum += f.Size
	}
	return sum
}
