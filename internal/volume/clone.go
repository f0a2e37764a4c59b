package volume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// CloneFilesMax bounds the files of a Clone, which keeps two descriptors of each.
const CloneFilesMax = 16384

// Clone is a copy of a tree that shares all blocks with it, for a file system that
// clones (XFS, btrfs). It is brought up to date in rounds: the first clones what is
// there, every later one only the blocks that were written since, however large the
// files are. So while somebody writes most of it can be done in peace, and the last
// round, for which they must stand still, is short.
//
// Not for use by more than one caller at a time. Nothing is made durable and no final
// name is given, as by Transfer.
type Clone struct {
	src, dst string
	skip     func(rel string) bool
	dirs     map[string]fs.FileMode
	files    map[string]*cloneFile
}

// NewClone begins a clone of src in dst, which must not exist. Skip is that of
// CopyOptions. Close gives up what it holds.
func NewClone(src, dst string, skip func(rel string) bool) (*Clone, error) {
	if err := Mkdir(dst, 0o700); err != nil {
		return nil, transferError(src, dst, err)
	}
	return &Clone{src: src, dst: dst, skip: skip, dirs: map[string]fs.FileMode{}, files: map[string]*cloneFile{}}, nil
}

// Round brings the clone to what the tree is now. What is written meanwhile may be in
// it by half, until a round during which nothing is written. It says how many bytes
// were cloned anew.
func (c *Clone) Round(ctx context.Context) (bytes int64, err error) {
	found, err := c.walk(ctx)
	if err == nil {
		err = c.arrange(found)
	}
	if err == nil {
		bytes, err = c.catchUp(ctx)
	}
	if err != nil {
		return bytes, transferError(c.src, c.dst, err)
	}
	return bytes, nil
}

// Finish gives folders and files the modes of the source and returns the files, in the
// order of their paths.
func (c *Clone) Finish() ([]File, error) {
	files := make([]File, 0, len(c.files))
	for rel, f := range c.files {
		if err := f.out.Chmod(f.mode); err != nil {
			return nil, transferError(c.src, c.dst, err)
		}
		files = append(files, File{Path: rel, Size: f.size, Cloned: true})
	}
	slices.SortFunc(files, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	for _, rel := range c.dirsDeepestFirst() {
		if err := Chmod(filepath.Join(c.dst, rel), c.dirs[rel]); err != nil {
			return nil, transferError(c.src, c.dst, err)
		}
	}
	return files, c.Close()
}

// Close lets go of all files. What is in dst is the caller's.
func (c *Clone) Close() error {
	var err error
	for rel, f := range c.files {
		err = errors.Join(err, f.close())
		delete(c.files, rel)
	}
	return err
}

// Bytes is the length of all files, as of the last round.
func (c *Clone) Bytes() int64 {
	var sum int64
	for _, f := range c.files {
		sum += f.size
	}
	return sum
}

func (c *Clone) dirsDeepestFirst() []string {
	dirs := make([]string, 0, len(c.dirs))
	for rel := range c.dirs {
		dirs = append(dirs, rel)
	}
	// A folder's path is longer than its parent's.
	slices.SortFunc(dirs, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return dirs
}

// walked is what a look at the source found.
type walked struct {
	dirs  []string // parents first
	modes map[string]fs.FileMode
	files map[string]uint64 // inode by path
}

func (c *Clone) walk(ctx context.Context) (walked, error) {
	found := walked{modes: map[string]fs.FileMode{}, files: map[string]uint64{}}
	vanished := CopyOptions{Live: true}.vanished
	err := WalkDir(c.src, func(path string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		rel, relErr := filepath.Rel(c.src, path)
		if err = errors.Join(err, relErr); err != nil || rel == "." {
			return vanished(err)
		}
		if c.skip != nil && c.skip(rel) {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return vanished(err)
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		switch mode := info.Mode(); {
		case mode.IsDir():
			found.dirs = append(found.dirs, rel)
			found.modes[rel] = mode.Perm()
		case mode.IsRegular() && ok:
			found.files[rel] = st.Ino
		case mode&(fs.ModeSocket|fs.ModeNamedPipe) != 0:
		default:
			return &fs.PathError{Op: "clone", Path: path, Err: errors.New("is a " + mode.Type().String() + ", which a data folder must not contain")}
		}
		return nil
	})
	if most := cloneFilesMax(); len(found.files) > most {
		err = errors.Join(err, fmt.Errorf("%d files are more than %d", len(found.files), most))
	}
	return found, err
}

// cloneFilesMax leaves half of our descriptors to all else that we do.
func cloneFilesMax() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return CloneFilesMax
	}
	return int(min(CloneFilesMax, limit.Cur/4))
}

// arrange removes what is gone, and opens what is new. A name that another file bears
// now is both.
func (c *Clone) arrange(found walked) error {
	for rel, f := range c.files {
		if inode, ok := found.files[rel]; ok && inode == f.inode {
			continue
		}
		delete(c.files, rel)
		if err := errors.Join(f.close(), Remove(filepath.Join(c.dst, rel))); err != nil {
			return err
		}
	}
	for _, rel := range c.dirsDeepestFirst() {
		if _, ok := found.modes[rel]; ok {
			continue
		}
		delete(c.dirs, rel)
		if err := Remove(filepath.Join(c.dst, rel)); err != nil {
			return err
		}
	}
	for _, rel := range found.dirs {
		if _, ok := c.dirs[rel]; !ok {
			if err := Mkdir(filepath.Join(c.dst, rel), 0o700); err != nil {
				return err
			}
		}
		c.dirs[rel] = found.modes[rel]
	}
	for rel := range found.files {
		if c.files[rel] != nil {
			continue
		}
		f, err := openCloneFile(filepath.Join(c.src, rel), filepath.Join(c.dst, rel))
		if errors.Is(err, fs.ErrNotExist) {
			continue // It is gone by now.
		}
		if err != nil {
			return err
		}
		c.files[rel] = f
	}
	return nil
}

// catchUp does all files.
func (c *Clone) catchUp(ctx context.Context) (int64, error) {
	var bytes atomic.Int64
	err := c.each(ctx, func(ctx context.Context, f *cloneFile, ask *fiemap) error {
		cloned, err := f.catchUp(ctx, ask)
		bytes.Add(cloned)
		return err
	})
	return bytes.Load(), err
}

// Learn finds out what the next round would have to ask for of the clone itself: half
// of the time that a round takes in which little has changed.
func (c *Clone) Learn(ctx context.Context) error {
	err := c.each(ctx, func(_ context.Context, f *cloneFile, ask *fiemap) error {
		if f.known || f.size == 0 {
			return nil
		}
		return f.learn(ask)
	})
	if err != nil {
		return transferError(c.src, c.dst, err)
	}
	return nil
}

// each calls do for all files, the largest first, a few at a time.
func (c *Clone) each(ctx context.Context, do func(context.Context, *cloneFile, *fiemap) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	files := make([]*cloneFile, 0, len(c.files))
	for _, f := range c.files {
		files = append(files, f)
	}
	slices.SortFunc(files, func(a, b *cloneFile) int { return cmp.Compare(b.size, a.size) })
	var next atomic.Int64
	var wait sync.WaitGroup
	for range min(copyWorkersMax, runtime.NumCPU()) {
		wait.Go(func() {
			ask := &fiemap{}
			for {
				n := int(next.Add(1)) - 1
				if n >= len(files) || ctx.Err() != nil {
					return
				}
				if err := do(ctx, files[n], ask); err != nil {
					cancel(err)
				}
			}
		})
	}
	wait.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// cloneFile is one file of a Clone.
type cloneFile struct {
	in, out *os.File
	inode   uint64
	mode    fs.FileMode
	size    int64 // as of the last round

	lies  []mapped // where the clone lies, if known
	known bool
	plain bool // that says where its content is
}

// openCloneFile opens a file, which is checked again as its folder is another user's,
// and makes its clone, still empty.
func openCloneFile(src, dst string) (*cloneFile, error) {
	in, err := Open(src)
	if err != nil {
		return nil, err
	}
	info, err := in.Stat()
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !info.Mode().IsRegular() || !ok {
		return nil, errors.Join(&fs.PathError{Op: "clone", Path: src, Err: errors.New("is no longer a file")}, in.Close())
	}
	out, err := Create(dst)
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	return &cloneFile{in: in, out: out, inode: st.Ino, mode: info.Mode().Perm(), size: info.Size()}, nil
}

func (f *cloneFile) close() error { return errors.Join(f.in.Close(), f.out.Close()) }
