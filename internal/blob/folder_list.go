package blob

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// listBatch is how many names of one folder are held at a time. A folder with n
// names is read 1 + n/listBatch times, so this bounds memory (about 2 MB) and not
// the number of objects.
var listBatch = 8192 // a variable for the tests alone

// List implements Store.
func (f *Folder) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if err := checkPrefix(prefix); err != nil {
			yield(Info{}, f.fail("list", prefix, err))
			return
		}
		root, err := f.enter(ctx, "list", prefix)
		if err != nil {
			yield(Info{}, err)
			return
		}
		defer root.Close()
		w := &walk{ctx: ctx, root: root, prefix: prefix, batch: listBatch, yield: yield}
		dir, _ := path.Split(prefix)
		if err := w.folder(strings.TrimSuffix(dir, "/")); err != nil && !w.ended {
			yield(Info{}, f.fail("list", prefix, err))
		}
	}
}

type walk struct {
	ctx    context.Context
	root   *os.Root
	prefix string
	batch  int
	yield  func(Info, error) bool
	ended  bool // the caller wants no more
}

// folder lists one folder, "" for the top, and those below it.
func (w *walk) folder(dir string) error {
	for after := ""; ; {
		handle, err := w.root.Open(path.Join(".", dir))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
			return nil
		}
		if err != nil {
			return err
		}
		names, more, err := w.scan(handle, dir, after)
		if err == nil {
			err = w.visit(handle, dir, names)
		}
		if err := errors.Join(err, handle.Close()); err != nil || w.ended || !more {
			return err
		}
		after = names[len(names)-1]
	}
}

func (w *walk) visit(handle *os.File, dir string, names []string) (err error) {
	for _, name := range names {
		if w.ctx.Err() != nil {
			return context.Cause(w.ctx)
		}
		if strings.HasSuffix(name, "/") {
			err = w.folder(path.Join(dir, name))
		} else {
			err = w.object(handle, path.Join(dir, name))
		}
		if err != nil || w.ended {
			return err
		}
	}
	return nil
}

func (w *walk) object(handle *os.File, name string) error {
	var st unix.Stat_t
	err := unix.Fstatat(int(handle.Fd()), path.Base(name), &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // deleted meanwhile
	}
	if err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFREG && !w.yield(Info{name, st.Size, time.Unix(st.Mtim.Unix())}, nil) {
		w.ended = true
	}
	return nil
}

// scan gives the smallest names of a folder after one of them, in order, and says
// if there are more. A folder's name ends in "/": so it sorts as in the full names
// below it ("a.x" before "a/b").
func (w *walk) scan(handle *os.File, dir, after string) (names []string, more bool, err error) {
	cut := func() {
		slices.Sort(names)
		if len(names) > w.batch {
			names, more = names[:w.batch], true
		}
	}
	for {
		entries, err := handle.ReadDir(1024)
		for _, entry := range entries {
			name := entry.Name()
			full := path.Join(dir, name)
			if entry.IsDir() {
				name += "/"
				full += "/"
			}
			if name > after && listed(strings.TrimSuffix(full, "/")) && w.leads(full) {
				names = append(names, name)
			}
		}
		if len(names) >= 2*w.batch {
			cut()
		}
		if err == io.EOF || errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
			cut()
			return names, more, nil
		}
		if err != nil {
			return nil, false, err
		}
		if w.ctx.Err() != nil {
			return nil, false, context.Cause(w.ctx)
		}
	}
}

// leads says if a name, or one below it, has the prefix.
func (w *walk) leads(full string) bool {
	return strings.HasPrefix(full, w.prefix) || strings.HasSuffix(full, "/") && strings.HasPrefix(w.prefix, full)
}

// Clean implements Store.
func (f *Folder) Clean(ctx context.Context, olderThan time.Duration) (int, error) {
	root, err := f.enter(ctx, "clean", "")
	if err != nil {
		return 0, err
	}
	defer root.Close()
	dir, err := root.Open(incompleteDir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, f.fail("clean", "", err)
	}
	defer dir.Close()
	removed := 0
	for {
		entries, err := dir.ReadDir(1024)
		for _, entry := range entries {
			gone, err := cleanOne(root, path.Join(incompleteDir, entry.Name()), olderThan)
			if err != nil {
				return removed, f.fail("clean", entry.Name(), err)
			}
			if gone {
				removed++
			}
		}
		if err == io.EOF {
			return removed, nil
		}
		if err == nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return removed, f.fail("clean", "", err)
		}
	}
}

// cleanOne removes a file that is old and that no Put holds.
func cleanOne(root *os.Root, name string, olderThan time.Duration) (bool, error) {
	file, err := openObject(root, name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || time.Since(info.ModTime()) < olderThan {
		return false, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return true, root.Remove(name)
}
