package volume

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// readMax bounds what is read into memory at once: whoever owns a folder can put a file of
// terabytes in the place of one of a line. A manifest of a database of a million files is
// a quarter of it.
const readMax = 1 << 30

// Open opens a file for reading.
func (r *Root) Open(name string) (*os.File, error) { return r.OpenFile(name, os.O_RDONLY, 0) }

// OpenFile opens a regular file, and nothing else. One that is written to has no second
// name; one that is read has none, or belongs to whom its folder belongs to. What is
// there is cut (O_TRUNC) after that is known.
func (r *Root) OpenFile(name string, flags int, mode fs.FileMode) (*os.File, error) {
	// O_NONBLOCK: a pipe would hold us up before we see that it is one.
	fd, err := r.open(name, flags&^os.O_TRUNC|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY, mode)
	if errors.Is(err, unix.ENXIO) {
		err = ErrNotFile // a pipe that nobody reads, or a socket
	}
	if err != nil {
		return nil, r.failed("open", name, err)
	}
	if err = r.fit(fd, name, flags); err == nil && flags&os.O_TRUNC != 0 {
		err = unix.Ftruncate(fd, 0)
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, r.failed("open", name, err)
	}
	path := name
	if r.dir != nil {
		path = filepath.Join(r.name, name)
	}
	return os.NewFile(uintptr(fd), path), nil
}

// fit refuses what is no file to be opened so.
func (r *Root) fit(fd int, name string, flags int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return unix.EISDIR
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return ErrNotFile
	}
	if st.Nlink > 1 {
		if flags&(os.O_WRONLY|os.O_RDWR) != 0 {
			return ErrSecondName
		}
		// PostgreSQL gives a segment its name by a second one for a moment.
		above, err := r.Stat(filepath.Dir(filepath.Clean(name)))
		if err != nil {
			return err
		}
		if int(st.Uid) != OwnerOf(above).UID {
			return ErrSecondName
		}
	}
	// For a file it means nothing, but the runtime would ask its poller.
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETFL, flags&unix.O_APPEND)
	return err
}

// OpenDir opens a folder.
func (r *Root) OpenDir(name string) (*os.File, error) {
	fd, err := r.open(name, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, r.failed("open", name, err)
	}
	path := name
	if r.dir != nil {
		path = filepath.Join(r.name, name)
	}
	return os.NewFile(uintptr(fd), path), nil
}

// ReadFile reads a file.
func (r *Root) ReadFile(name string) ([]byte, error) {
	file, err := r.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > readMax {
		return nil, r.failed("read", name, fmt.Errorf("has %d bytes, more than %d", info.Size(), readMax))
	}
	// Its end as of now: whoever writes on could have us read for ever.
	data := make([]byte, info.Size())
	n, err := io.ReadFull(file, data)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = nil // It was cut meanwhile.
	}
	return data[:n], err
}

// Create makes a file that was not there, ours alone.
func (r *Root) Create(name string) (*os.File, error) {
	return r.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
}

// CreateTemp is os.CreateTemp, in a folder of anybody.
func (r *Root) CreateTemp(dir, pattern string) (*os.File, error) {
	for {
		file, err := r.Create(filepath.Join(dir, tempName(pattern)))
		if !errors.Is(err, fs.ErrExist) {
			return file, err
		}
	}
}

// MkdirTemp is os.MkdirTemp, in a folder of anybody.
func (r *Root) MkdirTemp(dir, pattern string) (string, error) {
	for {
		made := filepath.Join(dir, tempName(pattern))
		err := r.Mkdir(made, 0o700)
		if !errors.Is(err, fs.ErrExist) {
			return made, err
		}
	}
}

func tempName(pattern string) string {
	before, after, _ := strings.Cut(pattern, "*")
	return before + rand.Text() + after
}

// WriteNew writes a file of its own in place of what bears the name, and gives it to its
// owner; nil keeps it ours. What was there is removed, not written to: it may be a link,
// a name of a file elsewhere, or open in somebody's hands. It is not whole after a crash:
// AtomicWrite is.
func (r *Root) WriteNew(name string, data []byte, mode fs.FileMode, owner *Owner) error {
	if err := r.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := r.Create(name)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if owner != nil {
		err = errors.Join(err, owner.Own(file))
	}
	return errors.Join(err, file.Chmod(mode), file.Close())
}

// Truncate cuts a file, or makes it longer.
func (r *Root) Truncate(name string, size int64) error {
	file, err := r.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(file.Truncate(size), file.Close())
}

// Own makes him the owner of an open file.
func (o Owner) Own(file *os.File) error { return file.Chown(o.UID, o.GID) }

func sortEntries(entries []fs.DirEntry) {
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
}
