package volume

import (
	"context"
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
	info, err := statfs(dir)
	if err != nil {
		return err
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
	return Remove(last)
}

func syncOpened(path string, flags int) error {
	file, err := OpenFile(path, flags, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

// unshareChunk is what is written out before more follows. At once, the log of an
// InnoDB server (96 MiB) kept its commits waiting for up to 90 ms.
const unshareChunk = 1 << 20

// Unshare gives a file blocks of its own where it shares them with others. Whoever
// writes over such a block in place has to find another one each time, which a commit
// waits for. A file system that cannot do that is left alone.
func Unshare(ctx context.Context, path string, pace *Pace) error {
	file, err := OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	fd := int(file.Fd())
	for at := int64(0); at < info.Size(); at += unshareChunk {
		length := min(unshareChunk, info.Size()-at)
		if err := pace.Wait(ctx, length); err != nil {
			return err
		}
		err := unix.Fallocate(fd, unix.FALLOC_FL_UNSHARE_RANGE, at, length)
		if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EINVAL) {
			return nil
		}
		if err != nil {
			return &fs.PathError{Op: "unshare", Path: path, Err: err}
		}
		// Nothing is lost without it but the pace.
		_ = unix.SyncFileRange(fd, at, length, unix.SYNC_FILE_RANGE_WAIT_BEFORE|unix.SYNC_FILE_RANGE_WRITE|unix.SYNC_FILE_RANGE_WAIT_AFTER)
	}
	return nil
}
