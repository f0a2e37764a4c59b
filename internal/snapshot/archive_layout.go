package snapshot

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"kurabe/internal/volume"
)

// layout is packs.json: what is in which pack, in which order.
type layout struct {
	Format  int    `json:"format"`
	ListSum string `json:"listSum"` // of the list whose files are divided
	Packs   []pack `json:"packs"`
}

type pack []member

// member is a folder or a file of the data folder.
type member struct {
	Path string `json:"path"` // below it, with slashes
	Mode uint32 `json:"mode"` // permissions only
	Dir  bool   `json:"dir,omitempty"`
	Size int64  `json:"size,omitempty"`
	// Sparse says that the file had holes, and gets them again.
	Sparse bool `json:"sparse,omitempty"`
}

const (
	layoutNewest = 1
	foldersMax   = 1 << 20 // engines make a folder for each database
	pathBytesMax = 4096    // the kernel's own bound
	blockBytes   = 512     // of stat
)

// divide puts all folders and small files into packs of about so many bytes, and
// each large file into one of its own.
func divide(dataDir, listSum string, files []volume.File, packBytes int64) (layout, error) {
	l := layout{Format: layoutNewest, ListSum: listSum}
	small, err := folders(dataDir)
	if err != nil {
		return l, err
	}
	var large []pack
	var bytes int64
	files = slices.SortedFunc(slices.Values(files), func(a, b volume.File) int { return cmp.Compare(a.Path, b.Path) })
	for _, f := range files {
		m, err := describe(dataDir, f)
		if err != nil {
			return l, err
		}
		if m.Size > packBytes/2 {
			large = append(large, pack{m})
			continue
		}
		if bytes+m.Size > packBytes {
			l.Packs = append(l.Packs, small)
			small, bytes = nil, 0
		}
		small, bytes = append(small, m), bytes+m.Size
	}
	if len(small) > 0 || len(l.Packs) == 0 {
		l.Packs = append(l.Packs, small)
	}
	l.Packs = append(l.Packs, large...)
	return l, l.check(files)
}

// folders lists every folder, before what is in it; empty ones count too, as
// PostgreSQL does not start without some.
func folders(dataDir string) (pack, error) {
	var all pack
	err := volume.WalkDir(dataDir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() || name == dataDir {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dataDir, name)
		all = append(all, member{Path: filepath.ToSlash(rel), Mode: uint32(info.Mode().Perm()), Dir: true})
		return err
	})
	return all, err
}

func describe(dataDir string, f volume.File) (member, error) {
	info, err := volume.Lstat(filepath.Join(dataDir, f.Path))
	if err != nil {
		return member{}, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return member{
		Path: filepath.ToSlash(f.Path), Mode: uint32(info.Mode().Perm()), Size: f.Size,
		Sparse: ok && st.Blocks*blockBytes < f.Size,
	}, nil
}

// parseLayout reads packs.json, which anybody may have written, and checks it
// against the list.
func parseLayout(raw []byte, listSum string, files []volume.File) (layout, error) {
	var l layout
	if err := json.Unmarshal(raw, &l); err != nil {
		return l, err
	}
	switch {
	case l.Format > layoutNewest:
		return l, fmt.Errorf("its format is %d, this program knows up to %d: %w", l.Format, layoutNewest, errNewer)
	case l.Format < 1:
		return l, fmt.Errorf("its format is %d", l.Format)
	case l.ListSum != listSum:
		return l, errors.New("it belongs to another list of files")
	}
	return l, l.check(files)
}

// check demands that each file is in exactly one pack with its size, that each
// folder comes before what is in it, and that nothing leads out of the data folder.
func (l layout) check(files []volume.File) error {
	sizes := make(map[string]int64, len(files))
	for _, f := range files {
		name := filepath.ToSlash(f.Path)
		if _, twice := sizes[name]; twice || !f.Summed || f.Size < 0 {
			return fmt.Errorf("the list of files names %.100q twice or without checksum", name)
		}
		sizes[name] = f.Size
	}
	folders := map[string]bool{".": true}
	for n, p := range l.Packs {
		for _, m := range p {
			if err := m.check(); err != nil {
				return fmt.Errorf("pack %d: %w", n+1, err)
			}
			size, listed := sizes[m.Path]
			switch {
			case !folders[path.Dir(m.Path)]:
				return fmt.Errorf("pack %d: the folder of %.100q does not come before it", n+1, m.Path)
			case m.Dir && (n > 0 || listed || folders[m.Path] || len(folders) > foldersMax):
				return fmt.Errorf("pack %d: folder %.100q is there already, or one too many", n+1, m.Path)
			case m.Dir:
				folders[m.Path] = true
			case !listed || size != m.Size:
				return fmt.Errorf("pack %d: file %.100q of %d bytes is not in the list of files", n+1, m.Path, m.Size)
			default:
				delete(sizes, m.Path)
			}
		}
	}
	for name := range sizes {
		return fmt.Errorf("file %.100q and %d more are in no pack", name, len(sizes)-1)
	}
	return nil
}

func (m member) check() error {
	switch {
	case len(m.Path) > pathBytesMax, m.Path == ".", path.Clean(m.Path) != m.Path, !filepath.IsLocal(m.Path), strings.ContainsAny(m.Path, "\x00\\"):
		return fmt.Errorf("invalid path in a data folder %.100q", m.Path)
	case m.Mode&^uint32(fs.ModePerm) != 0:
		return fmt.Errorf("%.100q has mode %o", m.Path, m.Mode)
	case m.Size < 0 || m.Dir && (m.Size != 0 || m.Sparse):
		return fmt.Errorf("%.100q has %d bytes", m.Path, m.Size)
	}
	return nil
}

// bytes is the content of a pack.
func (p pack) bytes() int64 {
	var sum int64
	for _, m := range p {
		sum += m.Size
	}
	return sum
}

// sums are the checksums of the list by path.
func sums(files []volume.File) map[string]uint32 {
	out := make(map[string]uint32, len(files))
	for _, f := range files {
		out[filepath.ToSlash(f.Path)] = f.Sum
	}
	return out
}
