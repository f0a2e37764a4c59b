package snapshot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"kurabe"
	"kurabe/internal/volume"
)

// Sum gives each file that has none its sum; the content is read, at that many bytes
// a second at most (0: as fast as it comes). The files of a
// snapshot do not change, so it may be cut off and begun again.
func (s Store) Sum(ctx context.Context, id kurabe.SnapshotID, files []volume.File, bytesPerSecondMax int64) ([]volume.File, error) {
	pace := volume.NewPace(bytesPerSecondMax)
	summed := make([]volume.File, len(files))
	for n, f := range files {
		if !f.Summed {
			sum, size, err := volume.SumFile(ctx, filepath.Join(s.Data(id), f.Path), pace)
			if err == nil && size != f.Size {
				err = fmt.Errorf("it has %d bytes, and had %d", size, f.Size)
			}
			if err != nil {
				return nil, fmt.Errorf("seal snapshot %s: file %s: %w", id, f.Path, err)
			}
			f.Sum, f.Summed = sum, true
		}
		summed[n] = f
	}
	return summed, nil
}

// Seal replaces the list of a complete snapshot by one with sums.
func (s Store) Seal(r Record, files []volume.File) error {
	old := r.ListSum
	if err := s.write(r, files); err != nil {
		return fmt.Errorf("seal snapshot %s: %w", r.Snapshot, err)
	}
	now, err := s.Open(r.Snapshot)
	if err != nil || now.ListSum == old {
		return err
	}
	err = volume.Remove(filepath.Join(s.Path(r.Snapshot), listName(old)))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// Transfer copies or clones the data folder of a complete snapshot to a folder that
// must not exist. It is refused when a file is missing or has another size, and
// fails when content that was read on the way does not have its sum.
func (s Store) Transfer(ctx context.Context, r Record, dst string, opts volume.TransferOptions) ([]volume.File, bool, error) {
	known, err := s.Check(r)
	if err != nil {
		return nil, false, err
	}
	files, cloned, err := volume.Transfer(ctx, s.Data(r.Snapshot), dst, opts)
	if err != nil {
		return nil, false, err
	}
	had := map[string]volume.File{}
	for _, f := range known {
		had[f.Path] = f
	}
	var kept []volume.File
	for _, f := range files {
		h, ok := had[f.Path]
		if !ok {
			continue // Of the engine's own tools, and no part of the list.
		}
		if f.Size != h.Size || f.Summed && h.Summed && f.Sum != h.Sum {
			return nil, false, damaged(r.Snapshot, "the content of file %s differs from what was written", f.Path)
		}
		if !f.Summed {
			h.Cloned = f.Cloned
			f = h
		}
		kept = append(kept, f)
	}
	return kept, cloned, nil
}
