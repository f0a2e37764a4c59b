package volume

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// walkHoldMax bounds the folders that a walk keeps open. Engines make three of them; what
// somebody else makes deeper is entered by its path, which is as free of links.
const walkHoldMax = 64

// WalkDir is filepath.WalkDir that holds the folders which it has entered: what it finds is
// below its root, wherever links that somebody makes meanwhile lead. The details of an
// entry are those of a link itself, and are to be asked for while it is visited.
func (r *Root) WalkDir(root string, fn fs.WalkDirFunc) error {
	info, err := r.Lstat(root)
	if err != nil {
		err = fn(root, nil, err)
	} else {
		w := &walk{root: r, fn: fn}
		err = w.visit(root, fs.FileInfoToDirEntry(info), func() (*os.File, error) { return r.OpenDir(root) })
	}
	if errors.Is(err, fs.SkipDir) || errors.Is(err, fs.SkipAll) {
		return nil
	}
	return err
}

type walk struct {
	root  *Root
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
		below := filepath.Join(path, e.Name())
		open := func() (*os.File, error) { return w.root.OpenDir(below) }
		if v, held := e.(*visited); held {
			open = v.open
		}
		err := w.visit(below, e, open)
		if errors.Is(err, fs.SkipDir) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// enter lists a folder, which stays open unless too many are.
func (w *walk) enter(path string, open func() (*os.File, error)) (*os.File, []fs.DirEntry, error) {
	if w.depth >= walkHoldMax {
		entries, err := w.root.ReadDir(path)
		return nil, entries, err
	}
	dir, err := open()
	if err != nil {
		return nil, nil, err
	}
	entries, err := dir.ReadDir(-1)
	sortEntries(entries)
	for n, e := range entries {
		entries[n] = &visited{DirEntry: e, dir: dir}
	}
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
	info := &statInfo{name: name}
	// One call for each of a hundred thousand files.
	if err := unix.Fstatat(int(dir.Fd()), name, (*unix.Stat_t)(unsafe.Pointer(&info.st)), unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return nil, &fs.PathError{Op: "lstat", Path: filepath.Join(dir.Name(), name), Err: err}
	}
	return info, nil
}

// statInfo is what the kernel says of a file.
type statInfo struct {
	name string
	st   syscall.Stat_t
}

func (i *statInfo) Name() string       { return i.name }
func (i *statInfo) Size() int64        { return i.st.Size }
func (i *statInfo) ModTime() time.Time { return time.Unix(i.st.Mtim.Unix()) }
func (i *statInfo) IsDir() bool        { return i.Mode().IsDir() }
func (i *statInfo) Sys() any           { return &i.st }

func (i *statInfo) Mode() fs.FileMode {
	mode := fs.FileMode(i.st.Mode & 0o777)
	if i.st.Mode&syscall.S_ISUID != 0 {
		mode |= fs.ModeSetuid
	}
	if i.st.Mode&syscall.S_ISGID != 0 {
		mode |= fs.ModeSetgid
	}
	if i.st.Mode&syscall.S_ISVTX != 0 {
		mode |= fs.ModeSticky
	}
	switch i.st.Mode & syscall.S_IFMT {
	case syscall.S_IFREG:
		return mode
	case syscall.S_IFDIR:
		return mode | fs.ModeDir
	case syscall.S_IFLNK:
		return mode | fs.ModeSymlink
	case syscall.S_IFIFO:
		return mode | fs.ModeNamedPipe
	case syscall.S_IFSOCK:
		return mode | fs.ModeSocket
	case syscall.S_IFCHR:
		return mode | fs.ModeDevice | fs.ModeCharDevice
	case syscall.S_IFBLK:
		return mode | fs.ModeDevice
	}
	return mode | fs.ModeIrregular
}

// OwnerOf is whom something belongs to.
func OwnerOf(info fs.FileInfo) Owner {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return Owner{-1, -1}
	}
	return Owner{int(st.Uid), int(st.Gid)}
}
