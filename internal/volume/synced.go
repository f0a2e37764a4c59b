package volume

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// SyncTransferred makes durable what a Transfer or a Clone has made of these files.
//
// SyncFS does that, and writes out what every database on the file system has left in
// the page cache: their commits wait behind it. A clone has nothing to write but what
// is in the journal, and XFS brings changes of files, folders and extents to the disk
// in the order in which they were made (strictly ordered metadata; the log's sequence
// in fs/xfs/xfs_log_cil.c), so one file that is made and synced after all of them
// brings them along. What was copied beside clones is synced file by file.
func SyncTransferred(dir string, files []File) error {
	var info unix.Statfs_t
	if err := unix.Statfs(dir, &info); err != nil {
		return &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	// An empty one has no more to write than a clone; PostgreSQL has hundreds of them.
	copied := slices.DeleteFunc(slices.Clone(files), func(f File) bool { return f.Cloned || f.Size == 0 })
	const few = 64 // a sync of one file flushes the disk's cache
	if info.Type != unix.XFS_SUPER_MAGIC || len(copied) > few {
		return SyncFS(dir)
	}
	for _, f := range copied {
		if err := syncOpened(filepath.Join(dir, f.Path), os.O_RDONLY); err != nil {
			return err
		}
	}
	last := filepath.Join(dir, ".last.tmp")
	if err := syncOpened(last, os.O_RDWR|os.O_CREATE|os.O_EXCL); err != nil {
		return err
	}
	return os.Remove(last)
}

func syncOpened(path string, flags int) error {
	file, err := os.OpenFile(path, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

// Unshare gives a file blocks of its own where it shares them with others. Whoever
// writes over such a block in place has to find another one each time, which a commit
// waits for. A file system that cannot do that is left alone.
func Unshare(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || info.Size() == 0 || !info.Mode().IsRegular() {
		return err
	}
	err = unix.Fallocate(int(file.Fd()), unix.FALLOC_FL_UNSHARE_RANGE, 0, info.Size())
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EINVAL) {
		return nil
	}
	if err != nil {
		return &fs.PathError{Op: "unshare", Path: path, Err: err}
	}
	return nil
}
