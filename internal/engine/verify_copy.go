package engine

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"

	"kurabe/internal/snapshot"
	"kurabe/internal/volume"
)

// hindrances are what goes wrong with a host rather than with a file.
var hindrances = []error{
	context.Canceled, context.DeadlineExceeded, syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE, syscall.ENFILE,
	syscall.ENOMEM, syscall.EINTR, syscall.EAGAIN, syscall.EROFS, syscall.EACCES, syscall.EPERM,
}

func hinders(err error) bool {
	for _, h := range hindrances {
		if errors.Is(err, h) {
			return true
		}
	}
	return false
}

// copyFolder copies or clones the folder of a snapshot. What is missing or has
// another size ends it: a check would only repeat that. Content that is wrong does
// not, as the engine's tools say what it means.
func (v *verifying) copyFolder(ctx context.Context, store snapshot.Store, opts volume.TransferOptions) (whole bool, err error) {
	r := v.from.record
	data := store.Data(r.Snapshot)
	known, err := store.List(r)
	if err != nil {
		if ctx.Err() != nil || hinders(err) {
			return false, err
		}
		v.add("%v", err)
		return false, nil
	}
	if err := v.compareSizes(data, known); err != nil || len(v.result.Problems) > 0 {
		return false, err
	}
	if err := roomToCopy(data, v.home.DataDir()); err != nil {
		return false, err
	}
	files, _, err := volume.Transfer(ctx, data, v.home.DataDir(), opts)
	if errors.Is(err, syscall.EIO) && ctx.Err() == nil {
		v.add("the disk cannot read it: %v", err)
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, v.compareSums(ctx, data, known, files, opts.BytesPerSecondMax)
}

// compareSizes looks at every file of the list.
func (v *verifying) compareSizes(data string, known []volume.File) error {
	for _, f := range known {
		if !filepath.IsLocal(f.Path) {
			v.add("the list of files names %q", f.Path)
			continue
		}
		info, err := volume.Lstat(filepath.Join(data, f.Path))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			v.add("file %s is missing", f.Path)
		case err != nil:
			return err
		case !info.Mode().IsRegular():
			v.add("file %s is none any more: %s", f.Path, info.Mode())
		case info.Size() != f.Size:
			v.add("file %s has %d bytes, and had %d", f.Path, info.Size(), f.Size)
		}
	}
	return nil
}

// compareSums compares content with the list. What was cloned was not read, so it is
// read here.
func (v *verifying) compareSums(ctx context.Context, data string, known, files []volume.File, bytesPerSecondMax int64) error {
	copied := map[string]volume.File{}
	for _, f := range files {
		copied[f.Path] = f
	}
	pace := volume.NewPace(bytesPerSecondMax)
	for _, f := range known {
		have, ok := copied[f.Path]
		if !ok {
			v.add("file %s went away while it was copied", f.Path)
			continue
		}
		if !have.Summed {
			var err error
			have.Sum, have.Size, err = volume.SumFile(ctx, filepath.Join(data, f.Path), pace)
			if errors.Is(err, syscall.EIO) && ctx.Err() == nil {
				v.add("the disk cannot read file %s: %v", f.Path, err)
				continue
			}
			if err != nil {
				return err
			}
		}
		if have.Size != f.Size || f.Summed && have.Sum != f.Sum {
			v.add("the content of file %s differs from what was written", f.Path)
		}
	}
	return nil
}
