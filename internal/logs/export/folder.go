package export

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"kurabe/internal/volume"
)

const (
	// filesMax bounds a listing: a year of hourly files.
	filesMax = 10_000
	// listPasses is after how many passes a folder is listed although it looks the same: the
	// server may have gone back to an older file, with its clock.
	listPasses = 120
	// settlePasses is for how many passes after a change it is listed: times of files are coarse.
	settlePasses = 2
)

// folder finds the files of a log.
type folder struct {
	dir, base string
	files     []file // newest listing, in order
	changed   time.Time
	passes    int // since the folder has changed, or was listed
}

// file is one of a listing.
type file struct {
	name  string
	inode uint64
	size  int64
	at    time.Time // newest write
}

// has says whether a file is one of the log: base itself, or base with an hour behind it.
func (f *folder) has(name string) bool {
	rest, ok := strings.CutPrefix(name, f.base)
	return ok && (rest == "" || rest[0] == '.' && !strings.HasSuffix(rest, ".csv"))
}

// less says whether a file is older than another one. A server that renames its files writes base.
func (f *folder) less(a, b string) bool {
	if a == f.base || b == f.base {
		return a != f.base
	}
	return a < b
}

// look lists the folder again if it may have changed, and says whether it has listed it.
func (f *folder) look(always bool) (listed bool, err error) {
	info, err := volume.Stat(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		f.files, f.changed = nil, time.Time{}
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("log folder: %w", err)
	}
	if f.passes++; !info.ModTime().Equal(f.changed) {
		f.passes = 0
	}
	if !always && f.passes > settlePasses && f.passes < listPasses {
		return false, nil
	}
	files, err := f.list()
	if err != nil {
		return false, err
	}
	if f.passes >= listPasses {
		f.passes = settlePasses
	}
	f.files, f.changed = files, info.ModTime()
	return true, nil
}

// list is what is there; none before the first start of the server.
func (f *folder) list() ([]file, error) {
	entries, err := volume.ReadDir(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list logs: %w", err)
	}
	var files []file
	for _, e := range entries {
		if !f.has(e.Name()) || len(files) == filesMax {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // rotated away meanwhile: the next listing has it
		}
		if err != nil {
			return nil, fmt.Errorf("list logs: %w", err)
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && info.Mode().IsRegular() {
			files = append(files, file{e.Name(), st.Ino, info.Size(), info.ModTime()})
		}
	}
	slices.SortFunc(files, func(a, b file) int {
		if f.less(a.name, b.name) {
			return -1
		}
		return 1
	})
	return files, nil
}

// open opens a file of a listing, nil if it is gone or not what it was.
func (f *folder) open(l file) (*openFile, error) {
	file, err := volume.Open(filepath.Join(f.dir, l.name))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, volume.ErrLink) || errors.Is(err, volume.ErrNotFile) || errors.Is(err, volume.ErrSecondName) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || st.Ino != l.inode {
		return nil, file.Close()
	}
	return &openFile{File: file, size: -1}, nil
}
