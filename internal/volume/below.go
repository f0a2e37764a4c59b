package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ErrLink is a path that a link lies on. Whoever owns a folder can put a link into it that
// leads anywhere, and can do so between two looks: root follows none below a folder of
// others, wherever it leads.
var ErrLink error = linkError{}

type linkError struct{}

func (linkError) Error() string { return "a symbolic link lies on this path; the service follows none" }

// Is says that the kernel's word for it is meant.
func (linkError) Is(other error) bool { return other == unix.ELOOP }

// ErrNotFile is a name of something else than a file: a pipe holds its reader up for ever,
// and a device does as it likes.
var ErrNotFile = errors.New("is not a regular file")

// ErrSecondName is a file that has another name, maybe in a folder of somebody else.
var ErrSecondName = errors.New("the file has a second hard link")

// Root is an open folder. All names are below it, and no link is followed: not in the
// middle of a name and not at its end, not even one that stays inside, since within an
// engine's folder all is the engine's. The functions of the package of the same names do
// that of a whole path; so a path that comes from a user is resolved first (Resolve).
type Root struct {
	fd   int
	name string   // for errors
	dir  *os.File // nil for whole paths
}

// anywhere takes whole paths.
var anywhere = &Root{fd: unix.AT_FDCWD}

// OpenRoot opens a folder to which no link leads.
func OpenRoot(path string) (*Root, error) {
	dir, err := anywhere.OpenDir(path)
	if err != nil {
		return nil, err
	}
	return &Root{fd: int(dir.Fd()), name: path, dir: dir}, nil
}

// Close gives the folder back.
func (r *Root) Close() error { return r.dir.Close() }

// Name is the path that the folder was opened with.
func (r *Root) Name() string { return r.name }

// Resolve gives the path of a folder without links: of one that the user named, before
// anybody else may write in it.
func Resolve(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	rest := ""
	for {
		real, err := filepath.EvalSymlinks(abs)
		if err == nil {
			return filepath.Join(real, rest), nil
		}
		if !errors.Is(err, fs.ErrNotExist) || abs == filepath.Dir(abs) {
			return "", err
		}
		// It is not there yet; its parents may be.
		abs, rest = filepath.Dir(abs), filepath.Join(filepath.Base(abs), rest)
	}
}

// open is openat2 without links.
func (r *Root) open(name string, flags int, mode fs.FileMode) (int, error) {
	how := unix.OpenHow{Flags: uint64(flags | unix.O_CLOEXEC), Resolve: unix.RESOLVE_NO_SYMLINKS}
	if flags&os.O_CREATE != 0 {
		how.Mode = uint64(mode.Perm())
	}
	if r.dir != nil {
		how.Resolve |= unix.RESOLVE_BENEATH
	}
	for {
		fd, err := unix.Openat2(r.fd, name, &how)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if errors.Is(err, unix.ELOOP) {
			err = ErrLink
		}
		return fd, err
	}
}

// failed names the path that an error is about, unless it does.
func (r *Root) failed(op, name string, err error) error {
	var named *fs.PathError
	if err == nil || errors.As(err, &named) {
		return err
	}
	if r.dir != nil {
		name = filepath.Join(r.name, name)
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// at calls do with the open parent of a name, and the name in it.
func (r *Root) at(op, name string, do func(dir int, base string) error) error {
	dir, base := filepath.Split(filepath.Clean(name))
	if base == "" || base == "." || base == ".." {
		return r.failed(op, name, unix.EINVAL)
	}
	if dir == "" {
		dir = "."
	}
	fd, err := r.open(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err == nil {
		err = do(fd, base)
		_ = unix.Close(fd)
	}
	return r.failed(op, name, err)
}

// Lstat says what bears a name; of a link at its end, that it is one.
func (r *Root) Lstat(name string) (fs.FileInfo, error) {
	fd, err := r.open(name, unix.O_PATH|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, r.failed("lstat", name, err)
	}
	file := os.NewFile(uintptr(fd), filepath.Base(name))
	defer file.Close()
	return file.Stat()
}

// Stat is Lstat, but a link is an error.
func (r *Root) Stat(name string) (fs.FileInfo, error) {
	info, err := r.Lstat(name)
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return nil, r.failed("stat", name, ErrLink)
	}
	return info, err
}

// Readlink says where a link leads, which is not where anything of ours follows.
func (r *Root) Readlink(name string) (target string, err error) {
	err = r.at("readlink", name, func(dir int, base string) error {
		buf := make([]byte, unix.PathMax)
		n, err := unix.Readlinkat(dir, base, buf)
		target = string(buf[:max(n, 0)])
		return err
	})
	return target, err
}

// Mkdir makes a folder.
func (r *Root) Mkdir(name string, mode fs.FileMode) error {
	return r.at("mkdir", name, func(dir int, base string) error { return unix.Mkdirat(dir, base, uint32(mode.Perm())) })
}

// MkdirAll makes a folder and its parents, as far as they are missing.
func (r *Root) MkdirAll(name string, mode fs.FileMode) error {
	switch info, err := r.Stat(name); {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return r.failed("mkdir", name, unix.ENOTDIR)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if above := filepath.Dir(filepath.Clean(name)); above != "." && above != "/" {
		if err := r.MkdirAll(above, mode); err != nil {
			return err
		}
	}
	err := r.Mkdir(name, mode)
	if errors.Is(err, fs.ErrExist) {
		if info, statErr := r.Stat(name); statErr == nil && info.IsDir() {
			return nil // Somebody was quicker.
		}
	}
	return err
}

// Symlink makes a link.
func (r *Root) Symlink(target, name string) error {
	return r.at("symlink", name, func(dir int, base string) error { return unix.Symlinkat(target, dir, base) })
}

// Remove removes a file, a link itself, or an empty folder.
func (r *Root) Remove(name string) error {
	return r.at("remove", name, func(dir int, base string) error {
		err := unix.Unlinkat(dir, base, 0)
		if err == nil || errors.Is(err, unix.ENOENT) {
			return err
		}
		if asFolder := unix.Unlinkat(dir, base, unix.AT_REMOVEDIR); !errors.Is(asFolder, unix.ENOTDIR) {
			return asFolder
		}
		return err
	})
}

// RemoveAll removes what bears a name with all that is in it, links themselves, and is
// content if there is nothing.
func (r *Root) RemoveAll(name string) error {
	err := r.at("remove", name, func(dir int, base string) error {
		// The handle's own path: the parent that was opened, whoever bears its name by now.
		parent, err := os.OpenRoot(procFD(dir))
		if err != nil {
			return err
		}
		defer parent.Close()
		err = parent.RemoveAll(base) // one name, so there is no link to follow on the way
		var named *fs.PathError
		if errors.As(err, &named) {
			return fmt.Errorf("%s: %w", named.Path, named.Err)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Rename gives another name, in place of what bears it.
func (r *Root) Rename(from, to string) error { return r.rename(from, to, 0) }

// RenameNew is Rename to a name that nothing bears.
func (r *Root) RenameNew(from, to string) error { return r.rename(from, to, unix.RENAME_NOREPLACE) }

// Exchange swaps two names.
func (r *Root) Exchange(a, b string) error { return r.rename(a, b, unix.RENAME_EXCHANGE) }

func (r *Root) rename(from, to string, flags uint) error {
	return r.at("rename", from, func(fromDir int, fromBase string) error {
		return r.at("rename to", to, func(toDir int, toBase string) error {
			return unix.Renameat2(fromDir, fromBase, toDir, toBase, flags)
		})
	})
}

// ReadDir lists a folder in the order of the names.
func (r *Root) ReadDir(name string) ([]fs.DirEntry, error) {
	dir, err := r.OpenDir(name)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(-1)
	for n, e := range entries {
		entries[n] = &listed{DirEntry: e, root: r, path: filepath.Join(name, e.Name())}
	}
	sortEntries(entries)
	return entries, err
}

// listed is an entry of a folder whose details are asked for without links.
type listed struct {
	fs.DirEntry
	root *Root
	path string
}

func (l *listed) Info() (fs.FileInfo, error) { return l.root.Lstat(l.path) }

// Chmod gives a file or a folder its mode; a link has none.
func (r *Root) Chmod(name string, mode fs.FileMode) error {
	return r.held("chmod", name, func(fd int, st *unix.Stat_t) error {
		if kind := st.Mode & unix.S_IFMT; kind != unix.S_IFREG && kind != unix.S_IFDIR {
			return ErrNotFile
		}
		if st.Mode&unix.S_IFMT == unix.S_IFREG && st.Nlink != 1 {
			return ErrSecondName
		}
		return os.Chmod(procFD(fd), mode)
	})
}

// Give makes somebody the owner of a file, a folder or a link itself. Of a file with
// another name it refuses that: that name may be somebody else's.
func (r *Root) Give(name string, to Owner) error {
	return r.held("chown", name, func(fd int, st *unix.Stat_t) error {
		if (to.UID == -1 || int(st.Uid) == to.UID) && (to.GID == -1 || int(st.Gid) == to.GID) {
			return nil
		}
		if st.Mode&unix.S_IFMT == unix.S_IFREG && st.Nlink != 1 {
			return ErrSecondName
		}
		return unix.Fchownat(fd, "", to.UID, to.GID, unix.AT_EMPTY_PATH)
	})
}

// held calls do with what bears a name, a link itself included, and its kind.
func (r *Root) held(op, name string, do func(fd int, st *unix.Stat_t) error) error {
	fd, err := r.open(name, unix.O_PATH|unix.O_NOFOLLOW, 0)
	if err != nil {
		return r.failed(op, name, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return r.failed(op, name, err)
	}
	return r.failed(op, name, do(fd, &st))
}

// procFD is a name of what is open, whatever has become of its path.
func procFD(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }
