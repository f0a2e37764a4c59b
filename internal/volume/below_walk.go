package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// errDeep ends a walk that would hold too many folders.
var errDeep = fmt.Errorf("lies deeper than %d folders", walkDepthMax)

// walkDepthMax bounds the folders that a walk keeps open. Engines make three of them.
const walkDepthMax = 256

// WalkDir is filepath.WalkDir that holds the folders which it has entered: what it finds is
// below its root, wherever links that somebody makes meanwhile lead. The details of an
// entry are those of a link itself, and are to be asked for while it is visited.
func (r *Root) WalkDir(root string, fn fs.WalkDirFunc) error {
	info, err := r.Lstat(root)
	if err != nil {
		err = fn(root, nil, err)
	} else {
		w := &walk{fn: fn}
		err = w.visit(root, fs.FileInfoToDirEntry(info), func() (*os.File, error) { return r.OpenDir(root) })
	}
	if errors.Is(err, fs.SkipDir) || errors.Is(err, fs.SkipAll) {
		return nil
	}
	return err
}

type walk struct {
	fn    fs.WalkDirFunc
	depth int
}

// visit calls fn for an entry and all below it.
func (w *walk) visit(path string, entry fs.DirEntry, open func() (*os.File, error)) error {
	if err := w.fn(path, entry, nil); err != nil || !entry.IsDir() {
		if errors.Is(err, fs.SkipDir) && entry.IsDir() {
			return nil
		}
		return err
	}
	dir, entries, err := w.enter(path, open)
	if dir != nil {
		defer dir.Close()
	}
	if err != nil {
		if err = w.fn(path, entry, err); err != nil {
			if errors.Is(err, fs.SkipDir) {
				return nil
			}
			return err
		}
	}
	w.depth++
	defer func() { w.depth-- }()
	for _, e := range entries {
		e := &visited{DirEntry: e, dir: dir}
		err := w.visit(filepath.Join(path, e.Name()), e, e.open)
		if errors.Is(err, fs.SkipDir) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) enter(path string, open func() (*os.File, error)) (*os.File, []fs.DirEntry, error) {
	if w.depth >= walkDepthMax {
		return nil, nil, &fs.PathError{Op: "walk", Path: path, Err: errDeep}
	}
	dir, err := open()
	if err != nil {
		return nil, nil, err
	}
	entries, err := dir.ReadDir(-1)
	sortEntries(entries)
	return dir, entries, err
}

// visited is an entry of a folder that is open while the walk is in it.
type visited struct {
	fs.DirEntry
	dir *os.File
}

func (v *visited) Info() (fs.FileInfo, error) { return statAt(v.dir, v.Name()) }

func (v *visited) open() (*os.File, error) {
	path := filepath.Join(v.dir.Name(), v.Name())
	fd, err := unix.Openat(int(v.dir.Fd()), v.Name(), os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// statAt is Lstat of a name in an open folder.
func statAt(dir *os.File, name string) (fs.FileInfo, error) {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "lstat", Path: filepath.Join(dir.Name(), name), Err: err}
	}
	file := os.NewFile(uintptr(fd), name)
	defer file.Close()
	return file.Stat()
}

// OwnerOf is whom something belongs to.
func OwnerOf(info fs.FileInfo) Owner {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return Owner{-1, -1}
	}
	return Owner{int(st.Uid), int(st.Gid)}
}
