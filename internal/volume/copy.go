package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// CopyOptions of CopyTree.
type CopyOptions struct {
	UID, GID int // owner of the copy; -1 keeps that of the source
	Workers  int // files at a time; 0 chooses

	// Sync makes the copy last before it gets its name. Without it a loss of power
	// may leave a tree with its name and without its content: only for what can be
	// made again.
	Sync bool

	// Live says that an engine works in the source, in backup mode: a file that
	// goes away meanwhile is left out. Otherwise that is an error.
	Live bool

	// Skip leaves out a file, or a folder with all in it, by its path below the
	// source.
	Skip func(rel string) bool
}

// More than four at a time do not make a disk faster, but a database beside slower.
const copyWorkersMax = 4

// CopyTree copies a tree to a name that must not exist. Where the file system can,
// files are cloned and share their blocks. Modes, links, holes and, if asked,
// owners are kept; sockets and pipes are left out; times and extended attributes
// are not copied. The copy appears under its name when it is complete.
func CopyTree(ctx context.Context, src, dst string, opts CopyOptions) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("copy %s to %s: %w", src, dst, err)
		}
	}()
	if _, err := Lstat(dst); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(fs.ErrExist, err)
	}
	temp := dst + tempSuffix
	if err := RemoveTree(filepath.Dir(dst), temp); err != nil {
		return err
	}
	if err := copyInto(ctx, src, temp, opts); err != nil {
		return errors.Join(err, RemoveTree(filepath.Dir(dst), temp))
	}
	if opts.Sync {
		if err := syncFS(temp); err != nil {
			return err
		}
	}
	// Not Rename, which replaces an empty folder that somebody made meanwhile.
	if err := RenameNew(temp, dst); err != nil {
		return err
	}
	if opts.Sync {
		return SyncDir(filepath.Dir(dst))
	}
	return nil
}

// folder remembers the mode that a copied folder gets at the end: until then it
// must be writable for us.
type folder struct {
	path string
	info fs.FileInfo
}

// copied is one entry on its way to a worker.
type copied struct {
	rel  string
	kind fs.FileMode
}

func copyInto(ctx context.Context, src, dst string, opts CopyOptions) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if opts.Workers < 1 {
		opts.Workers = min(copyWorkersMax, runtime.NumCPU())
	}
	files := make(chan copied, opts.Workers)
	var workers sync.WaitGroup
	for range opts.Workers {
		workers.Go(func() {
			for c := range files {
				if ctx.Err() != nil {
					continue // drain
				}
				if err := copyEntry(ctx, filepath.Join(src, c.rel), filepath.Join(dst, c.rel), c.kind, opts); err != nil {
					cancel(err)
				}
			}
		})
	}
	folders, err := walkCopy(ctx, src, dst, opts, files)
	close(files)
	workers.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	// Deepest first: the mode of a parent may forbid to enter.
	for i := len(folders) - 1; i >= 0; i-- {
		if err := giveMode(folders[i].path, folders[i].info, opts); err != nil {
			return err
		}
	}
	return nil
}

// walkCopy makes the folders and hands out everything else.
func walkCopy(ctx context.Context, src, dst string, opts CopyOptions, files chan<- copied) ([]folder, error) {
	var folders []folder
	err := WalkDir(src, func(path string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		rel, relErr := filepath.Rel(src, path)
		if err = errors.Join(err, relErr); err != nil {
			return opts.vanished(err)
		}
		if rel != "." && opts.Skip != nil && opts.Skip(rel) {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !entry.IsDir() {
			files <- copied{rel, entry.Type()}
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return opts.vanished(err)
		}
		made := filepath.Join(dst, rel)
		folders = append(folders, folder{made, info})
		return Mkdir(made, 0o700)
	})
	return folders, err
}

// vanished forgives a missing file while the source is in use.
func (o CopyOptions) vanished(err error) error {
	if o.Live && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func copyEntry(ctx context.Context, src, dst string, mode fs.FileMode, opts CopyOptions) error {
	switch {
	case mode.IsRegular():
		return copyFile(ctx, src, dst, opts)
	case mode&fs.ModeSymlink != 0:
		info, err := Lstat(src)
		if err != nil {
			return opts.vanished(err)
		}
		target, err := Readlink(src)
		if err != nil {
			return opts.vanished(err)
		}
		if err := Symlink(target, dst); err != nil {
			return err
		}
		return giveOwner(dst, info, opts)
	case mode&(fs.ModeSocket|fs.ModeNamedPipe) != 0:
		return nil // They mean something to a running process only.
	default:
		return fmt.Errorf("%s is a %v, which a data folder must not contain", src, mode.Type())
	}
}

func giveMode(path string, info fs.FileInfo, opts CopyOptions) error {
	// chown first, as it clears set-id bits.
	if err := giveOwner(path, info, opts); err != nil {
		return err
	}
	return Chmod(path, info.Mode())
}

func giveOwner(path string, info fs.FileInfo, opts CopyOptions) error {
	return Give(path, opts.owner(info))
}

// owner is that of the copy of something.
func (o CopyOptions) owner(of fs.FileInfo) Owner {
	was := OwnerOf(of)
	if o.UID != -1 {
		was.UID = o.UID
	}
	if o.GID != -1 {
		was.GID = o.GID
	}
	return was
}

// syncFS writes out a whole file system: one call, where fsync of a thousand files
// would wait a thousand times. It also waits for what others have written there.
func syncFS(path string) error {
	dir, err := OpenDir(path)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(dir.Fd())), dir.Close())
}
