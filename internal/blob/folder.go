package blob

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Folder is a Store in a folder: each object is a file of its name. It may lie on
// a network file system and serve several hosts.
//
// Each call opens the folder and looks for the repository's mark through that
// handle, and does all its work through it: a disk that goes away makes calls fail
// and never lets one write to the mount point below. Between calls nothing is
// open, so that the disk can be unmounted.
type Folder struct{ dir string }

// incompleteDir holds what is being written. It begins with a dot, so that no
// object has its name.
const incompleteDir = ".incomplete"

const (
	folderMode = 0o700 // a backup holds all that the database holds
	fileMode   = 0o600
)

// NewFolder is a Store in the folder, which must be absolute and hold a repository
// by the time of the first call.
func NewFolder(dir string) (*Folder, error) {
	if !filepath.IsAbs(dir) || filepath.Clean(dir) == "/" {
		return nil, &LocationError{dir, "folder", "it must be an absolute path and not the root folder"}
	}
	return &Folder{filepath.Clean(dir)}, nil
}

func (f *Folder) String() string { return f.dir }

func (f *Folder) fail(op, name string, err error) error {
	if err == nil {
		return nil
	}
	var ours *Error
	if errors.As(err, &ours) {
		return err
	}
	e := &Error{Op: op, Name: name, Where: f.dir, Err: err}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Kind = ErrNotFound
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		e.Kind, e.Hint = ErrFull, "free space there, or keep backups for fewer days"
	case errors.Is(err, unix.EROFS):
		e.Kind, e.Hint = ErrDenied, "the file system is mounted read-only: the kernel's log says why"
	case errors.Is(err, fs.ErrPermission):
		e.Kind, e.Hint = ErrDenied, "give the folder and all in it to the user of the service"
	case errors.Is(err, unix.ESTALE), errors.Is(err, unix.ETIMEDOUT), errors.Is(err, unix.EHOSTDOWN), errors.Is(err, unix.ENOTCONN):
		e.Kind, e.Hint = ErrBusy, "look after the file server"
	case errors.Is(err, unix.EIO):
		e.Hint = "the disk reports an error: the kernel's log has more"
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.EISDIR):
		e.Kind, e.Hint = ErrName, "a name cannot be a folder of another name"
	case errors.Is(err, unix.EFBIG):
		e.Kind = ErrTooLarge
	}
	return e
}

// enter opens the folder and proves that it is the repository.
func (f *Folder) enter(ctx context.Context, op, name string) (*os.Root, error) {
	if ctx.Err() != nil {
		return nil, f.fail(op, name, context.Cause(ctx))
	}
	root, err := os.OpenRoot(f.dir)
	if err == nil {
		var info fs.FileInfo
		if info, err = root.Lstat(markName); err == nil && info.Mode().IsRegular() {
			return root, nil
		}
		_ = root.Close()
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return nil, &Error{Op: op, Name: name, Where: f.dir, Kind: ErrNoRepository, Err: err,
			Hint: "is its disk mounted?"}
	}
	return nil, f.fail(op, name, err)
}

// Get implements Store.
func (f *Folder) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	return f.read(ctx, name, 0, -1)
}

// GetRange implements Store.
func (f *Folder) GetRange(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	if err := checkRange(offset, length); err != nil {
		return nil, f.fail("get", name, err)
	}
	return f.read(ctx, name, offset, length)
}

func (f *Folder) read(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	file, err := f.open(ctx, "get", name)
	if err != nil {
		return nil, f.fail("get", name, err)
	}
	reader := &folderReader{f: f, ctx: ctx, name: name, file: file, r: file}
	if length >= 0 {
		reader.r = io.NewSectionReader(file, offset, length)
	}
	return reader, nil
}

func (f *Folder) open(ctx context.Context, op, name string) (*os.File, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	root, err := f.enter(ctx, op, name)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return openObject(root, name)
}

// openObject does not wait for the writer of a pipe that somebody put there.
func openObject(root *os.Root, name string) (*os.File, error) {
	file, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, asMissing(err)
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// asMissing: where the folder of a name is an object, the name is not there.
func asMissing(err error) error {
	if errors.Is(err, unix.ENOTDIR) {
		return fs.ErrNotExist
	}
	return err
}

type folderReader struct {
	f    *Folder
	ctx  context.Context
	name string
	file *os.File
	r    io.Reader
}

func (r *folderReader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, r.f.fail("get", r.name, context.Cause(r.ctx))
	}
	n, err := r.r.Read(p)
	if err != nil && err != io.EOF {
		err = r.f.fail("get", r.name, err)
	}
	return n, err
}

func (r *folderReader) Close() error { return r.file.Close() }

// Stat implements Store.
func (f *Folder) Stat(ctx context.Context, name string) (Info, error) {
	file, err := f.open(ctx, "stat", name)
	if err != nil {
		return Info{}, f.fail("stat", name, err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return Info{}, f.fail("stat", name, err)
	}
	return Info{name, info.Size(), info.ModTime()}, nil
}

// Delete implements Store. Folders that get empty go too.
func (f *Folder) Delete(ctx context.Context, name string) error {
	if err := CheckName(name); err != nil {
		return f.fail("delete", name, err)
	}
	root, err := f.enter(ctx, "delete", name)
	if err != nil {
		return err
	}
	defer root.Close()
	info, err := root.Lstat(name)
	if err == nil && info.Mode().IsRegular() {
		err = root.Remove(name)
	}
	if err = asMissing(err); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return f.fail("delete", name, err)
	}
	// Also when it was gone: whoever removed it may have died before this.
	if err := syncFolders(root, name); err != nil {
		return f.fail("delete", name, err)
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if removeEmpty(root, dir) != nil {
			break // not empty, as most often
		}
	}
	return nil
}

// removeEmpty removes a folder. Not root.Remove, which would remove an object that
// has that name.
func removeEmpty(root *os.Root, dir string) error {
	above, err := root.Open(path.Dir(dir))
	if err != nil {
		return err
	}
	defer above.Close()
	return unix.Unlinkat(int(above.Fd()), path.Base(dir), unix.AT_REMOVEDIR)
}
