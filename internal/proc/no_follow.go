package proc

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// The files that processes are found by lie beside folders of their users, and a working
// folder is one of those. None of them is reached over a link: it would have us lock, write
// or kill what its maker chooses.

// openNoLink opens what bears a path to which no link leads.
func openNoLink(path string, flags int, mode uint32) (int, error) {
	how := unix.OpenHow{Flags: uint64(flags | unix.O_CLOEXEC), Resolve: unix.RESOLVE_NO_SYMLINKS}
	if flags&unix.O_CREAT != 0 {
		how.Mode = uint64(mode)
	}
	for {
		fd, err := unix.Openat2(unix.AT_FDCWD, path, &how)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return -1, &fs.PathError{Op: "open", Path: path, Err: err}
		}
		return fd, nil
	}
}

// openFile opens a file for reading.
func openFile(path string) (*os.File, error) {
	fd, err := openNoLink(path, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

// statDir looks at a folder itself.
func statDir(path string) (st unix.Stat_t, err error) {
	fd, err := openNoLink(path, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return st, err
	}
	defer unix.Close(fd)
	if err := unix.Fstat(fd, &st); err != nil {
		return st, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return st, nil
}

// inFolder calls do with the open folder of a path, and the name in it.
func inFolder(path string, do func(dir int, name string) error) error {
	dir, err := openNoLink(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	if err := do(dir, filepath.Base(path)); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func removeFile(path string) error {
	return inFolder(path, func(dir int, name string) error { return unix.Unlinkat(dir, name, 0) })
}
