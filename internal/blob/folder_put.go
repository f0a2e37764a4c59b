package blob

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// copyBytes is one write of a Put.
const copyBytes = 256 << 10

// Put implements Store.
func (f *Folder) Put(ctx context.Context, name string, r io.Reader) error {
	src := &source{ctx: ctx, r: r}
	done, err := f.settled(ctx, name, func(f *Folder) error { return settle(ctx, f, name, src) })
	if done || err != nil {
		return err
	}
	return f.add(ctx, name, func(file *os.File) error {
		_, err := io.CopyBuffer(struct{ io.Writer }{file}, src, make([]byte, copyBytes))
		if src.failed() != nil {
			return &Error{Op: "put", Name: name, Where: f.dir, Err: src.failed()}
		}
		return err
	})
}

// Clone implements Cloner.
func (f *Folder) Clone(ctx context.Context, name, file string) error {
	from, err := os.OpenFile(file, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return &Error{Op: "clone", Name: name, Where: f.dir, Err: err}
	}
	defer from.Close()
	done, err := f.settled(ctx, name, func(f *Folder) error { return settle(ctx, f, name, &source{ctx: ctx, r: from}) })
	if done || err != nil {
		return err
	}
	return f.add(ctx, name, func(file *os.File) error {
		err := unix.IoctlFileClone(int(file.Fd()), int(from.Fd()))
		for _, no := range []error{unix.EXDEV, unix.EOPNOTSUPP, unix.ENOTTY, unix.EINVAL, unix.ENOSYS, unix.EISDIR, unix.ETXTBSY} {
			if errors.Is(err, no) {
				return &Error{Op: "clone", Name: name, Where: f.dir, Kind: ErrUnsupported, Err: err,
					Hint: "needs XFS or btrfs with the file on the same file system"}
			}
		}
		return err
	})
}

// settled looks if the name is taken before anything is written, and decides then.
// What is there is made durable before it counts as put: who put it may have died
// after the rename and before the syncs.
func (f *Folder) settled(ctx context.Context, name string, same func(*Folder) error) (done bool, err error) {
	if err := CheckName(name); err != nil {
		return false, f.fail("put", name, err)
	}
	root, err := f.enter(ctx, "put", name)
	if err != nil {
		return false, err
	}
	defer root.Close()
	info, err := root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, f.fail("put", name, err)
	case info.IsDir():
		return false, f.fail("put", name, unix.EISDIR)
	}
	if err := same(f); err != nil {
		return false, err
	}
	return true, f.fail("put", name, syncFolders(root, name))
}

// add makes an object of what fill writes.
func (f *Folder) add(ctx context.Context, name string, fill func(*os.File) error) (err error) {
	defer func() { err = f.fail("put", name, sameText(err)) }()
	root, err := f.enter(ctx, "put", name)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.Mkdir(incompleteDir, folderMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	temp := path.Join(incompleteDir, rand.Text())
	file, err := root.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	defer file.Close()
	// Clean removes only what nobody holds.
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOLCK) || errors.Is(err, unix.ENOSYS) {
		err = nil // no locks here: Clean goes by the age alone
	}
	if err == nil {
		err = fill(file)
	}
	if err == nil {
		err = file.Sync()
	}
	if err == nil {
		err = f.publish(ctx, root, file, temp, name)
	}
	if err != nil {
		// After a rename there is nothing under this name, and that is fine.
		_ = root.Remove(temp)
	}
	return err
}

// sameText takes the name of the file in the making out of an error: it is another at
// each try, and who repeats a Put tells of a reason once.
func sameText(err error) error {
	var ours *Error
	var at *fs.PathError
	if errors.As(err, &ours) || !errors.As(err, &at) {
		return err
	}
	return &fs.PathError{Op: at.Op, Path: incompleteDir, Err: at.Err}
}

// publishAttempts bounds the race with a Delete that removes the empty folder which
// we have just made.
const publishAttempts = 10

// publish gives the written file its name, unless that is taken.
func (f *Folder) publish(ctx context.Context, root *os.Root, file *os.File, temp, name string) error {
	for range publishAttempts {
		err := makeFolders(root, path.Dir(name))
		if err == nil {
			err = renameNew(root, temp, name)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case errors.Is(err, fs.ErrExist):
			if _, err := file.Seek(0, io.SeekStart); err != nil {
				return err
			}
			if err := settle(ctx, f, name, &source{ctx: ctx, r: file}); err != nil {
				return err
			}
			if err := root.Remove(temp); err != nil {
				return err
			}
		case err != nil:
			return err
		}
		return syncFolders(root, name)
	}
	return &Error{Op: "put", Name: name, Where: f.dir, Kind: ErrBusy, Hint: "another process keeps removing its folder"}
}

// makeFolders makes what is missing. Not root.MkdirAll, whose errors do not tell a
// folder that goes away meanwhile from a file in its place.
func makeFolders(root *os.Root, dir string) error {
	if dir == "." {
		return nil
	}
	err := root.Mkdir(dir, folderMode)
	if errors.Is(err, fs.ErrNotExist) {
		if err = makeFolders(root, path.Dir(dir)); err == nil {
			err = root.Mkdir(dir, folderMode)
		}
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// renameNew renames and never replaces. Not every file system knows the flag (NFS
// does not), and not every one knows hard links (exFAT); each known one has one.
func renameNew(root *os.Root, temp, name string) error {
	from, err := root.Open(path.Dir(temp))
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := root.Open(path.Dir(name))
	if err != nil {
		return err
	}
	defer to.Close()
	oldName, newName := path.Base(temp), path.Base(name)
	err = unix.Renameat2(int(from.Fd()), oldName, int(to.Fd()), newName, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP) {
		err = unix.Linkat(int(from.Fd()), oldName, int(to.Fd()), newName, 0)
		if err == nil {
			err = unix.Unlinkat(int(from.Fd()), oldName, 0)
		}
	}
	if err != nil {
		return fmt.Errorf("give the file its name: %w", err)
	}
	return nil
}

// syncFolders makes a name last, and each folder on the way to it, as any of them
// may be new. A clean folder costs next to nothing. One that is gone was empty.
func syncFolders(root *os.Root, name string) error {
	for dir := name; dir != "."; {
		dir = path.Dir(dir)
		handle, err := root.Open(dir)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
			continue
		}
		if err != nil {
			return err
		}
		err = handle.Sync()
		if errors.Is(err, unix.EINVAL) {
			err = nil // some network file systems write names through
		}
		if err := errors.Join(err, handle.Close()); err != nil {
			return fmt.Errorf("sync the folder: %w", err)
		}
	}
	return nil
}
