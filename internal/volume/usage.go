package volume

import (
	"errors"
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

// blockBytes is the unit of st_blocks, whatever the file system's block is.
const blockBytes = 512

// UsedBytes is the space allocated for a tree: sparse files count by their blocks,
// hard links once. Blocks shared with a clone count in each. The tree may change
// meanwhile. Links are not followed.
func UsedBytes(path string) (int64, error) {
	type inode struct{ dev, ino uint64 }
	linked := map[inode]bool{}
	var sum int64
	err := WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		var info fs.FileInfo
		if err == nil {
			info, err = entry.Info()
		}
		if errors.Is(err, fs.ErrNotExist) && name != path {
			return nil // an engine drops files all the time
		}
		if err != nil {
			return err
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return nil
		}
		if st.Nlink > 1 && !info.IsDir() {
			id := inode{uint64(st.Dev), st.Ino}
			if linked[id] {
				return nil
			}
			linked[id] = true
		}
		sum += st.Blocks * blockBytes
		return nil
	})
	return sum, err
}

// FreeBytes is what an unprivileged user may still allocate: engines are, and the
// reserve of root is of no use to them.
func FreeBytes(path string) (int64, error) {
	st, err := statfs(path)
	if err != nil {
		return 0, err
	}
	return int64(st.Bavail) * st.Frsize, nil
}

// statfs asks of the file system on which a path lies.
func statfs(path string) (st unix.Statfs_t, err error) {
	fd, err := anywhere.open(path, unix.O_PATH, 0)
	if err == nil {
		err = unix.Fstatfs(fd, &st)
		_ = unix.Close(fd)
	}
	return st, anywhere.failed("statfs", path, err)
}

// Reflink tries if files in a folder can be cloned without copying.
func Reflink(dir string) bool {
	src, err := CreateTemp(dir, ".reflink.*"+tempSuffix)
	if err != nil {
		return false
	}
	defer func() {
		_ = src.Close()
		_ = Remove(src.Name())
	}()
	dst, err := CreateTemp(dir, ".reflink.*"+tempSuffix)
	if err != nil {
		return false
	}
	defer func() {
		_ = dst.Close()
		_ = Remove(dst.Name())
	}()
	if _, err := src.Write(make([]byte, 4096)); err != nil {
		return false
	}
	return unix.IoctlFileClone(int(dst.Fd()), int(src.Fd())) == nil
}
