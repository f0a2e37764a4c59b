package volume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// File is one file of a transferred tree.
type File struct {
	Path string `json:"path"` // below the tree
	Size int64  `json:"size"`
	// Sum is the CRC-32C of the content. A clone is not read, so it has none until
	// Sum is called: Summed says which.
	Sum    uint32 `json:"sum,omitempty"`
	Summed bool   `json:"summed,omitempty"`
	// Cloned says, of a file that was just transferred, that it shares its blocks with
	// the source: nothing of its content is left to be written.
	Cloned bool `json:"-"`
}

// TransferOptions of Transfer.
type TransferOptions struct {
	Workers int // files at a time; 0 chooses
	// Live and Skip are those of CopyOptions.
	Live bool
	Skip func(rel string) bool
	// BytesPerSecondMax bounds a copy; 0 does not. Clones cost no bytes.
	BytesPerSecondMax int64
	// Owner of the copy, nil for the caller.
	Owner *Owner
	// Cached leaves the copy in the page cache, where somebody will read it soon.
	Cached bool
	// Progress is told of the bytes done, of how many, from any worker.
	Progress func(done, total int64)
}

// Owner is who a copy is for.
type Owner struct{ UID, GID int }

// Transfer copies or clones a tree for keeping: to a folder that must not exist,
// with the modes of the source. Unlike CopyTree it sums what
// it reads, reports progress, can be paced, and keeps the copy from filling the page
// cache and from piling up in it: written blocks go to the disk as they come, so
// that a database beside does not wait behind gigabytes when it syncs its log.
// Nothing is made durable and no final name is given: the caller does both.
// Links and sockets in the source are refused and left out.
func Transfer(ctx context.Context, src, dst string, opts TransferOptions) (files []File, cloned bool, err error) {
	list, err := survey(ctx, src, opts)
	if err != nil {
		return nil, false, transferError(src, dst, err)
	}
	if err := errors.Join(Mkdir(dst, 0o700), opts.give(dst)); err != nil {
		return nil, false, transferError(src, dst, err)
	}
	for _, dir := range list.dirs {
		made := filepath.Join(dst, dir.rel)
		if err := errors.Join(Mkdir(made, 0o700), opts.give(made)); err != nil {
			return nil, false, transferError(src, dst, err)
		}
	}
	t := &transfer{src: src, dst: dst, opts: opts, total: list.bytes, pace: NewPace(opts.BytesPerSecondMax)}
	t.cloned.Store(true)
	if err := t.run(ctx, list.files); err != nil {
		return nil, false, transferError(src, dst, err)
	}
	// Deepest first: the mode of a parent may forbid to enter.
	for _, dir := range slices.Backward(list.dirs) {
		if err := Chmod(filepath.Join(dst, dir.rel), dir.mode); err != nil {
			return nil, false, transferError(src, dst, err)
		}
	}
	slices.SortFunc(t.files, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	return t.files, t.cloned.Load(), nil
}

func (o TransferOptions) give(path string) error {
	if o.Owner == nil {
		return nil
	}
	return Give(path, *o.Owner)
}

func transferError(src, dst string, err error) error {
	return fmt.Errorf("copy %s to %s: %w", src, dst, err)
}

// surveyed is what a walk found, folders before what is in them.
type surveyed struct {
	dirs  []surveyedDir
	files []string
	bytes int64
}

type surveyedDir struct {
	rel  string
	mode fs.FileMode
}

func survey(ctx context.Context, src string, opts TransferOptions) (surveyed, error) {
	var all surveyed
	vanished := CopyOptions{Live: opts.Live}.vanished
	err := WalkDir(src, func(path string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		rel, relErr := filepath.Rel(src, path)
		if err = errors.Join(err, relErr); err != nil {
			return vanished(err)
		}
		if rel == "." {
			return nil
		}
		if opts.Skip != nil && opts.Skip(rel) {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return vanished(err)
		}
		switch mode := info.Mode(); {
		case mode.IsDir():
			all.dirs = append(all.dirs, surveyedDir{rel, mode.Perm()})
		case mode.IsRegular():
			all.files = append(all.files, rel)
			all.bytes += info.Size()
		case mode&(fs.ModeSocket|fs.ModeNamedPipe) != 0:
		default:
			// A link could lead the copy out of the folder; engines of ours make none.
			return &fs.PathError{Op: "copy", Path: path, Err: errors.New("is a " + mode.Type().String() + ", which a data folder must not contain")}
		}
		return nil
	})
	return all, err
}

// transfer is one Transfer under way.
type transfer struct {
	src, dst string
	opts     TransferOptions
	pace     *Pace
	total    int64
	done     atomic.Int64
	cloned   atomic.Bool // no file had to be copied
	passing  passing

	mu    sync.Mutex // guards files
	files []File
}

func (t *transfer) run(ctx context.Context, files []string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	workers := t.opts.Workers
	if workers < 1 {
		workers = min(copyWorkersMax, runtime.NumCPU())
	}
	var next atomic.Int64
	var wait sync.WaitGroup
	for range workers {
		wait.Go(func() {
			w := newCopier(t)
			for {
				n := int(next.Add(1)) - 1
				if n >= len(files) || ctx.Err() != nil {
					return
				}
				if err := w.file(ctx, files[n]); err != nil {
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

// advance counts n bytes as done.
func (t *transfer) advance(n int64) {
	done := t.done.Add(n)
	if t.opts.Progress != nil {
		t.opts.Progress(min(done, t.total), t.total)
	}
}

func (t *transfer) add(f File) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.files = append(t.files, f)
}
