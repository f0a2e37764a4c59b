package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// ErrOutside is a path that is not below the root it should be below.
var ErrOutside = errors.New("path is outside of its root")

// RemoveTree removes a tree below root, and refuses anything else: root itself, a
// path beside it, one that links lead out of it, or a tree with another file system
// mounted in it. A tree that is not there is removed already. The tree first gets a
// temporary name, so that a crash half-way leaves no half of a database that looks
// like a whole.
func RemoveTree(root, path string) error {
	rel, err := below(root, path)
	if err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	// All below goes through this handle, which no link can lead out of.
	base, err := OpenRoot(root)
	if err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	defer base.Close()
	if _, err := base.Lstat(rel); errors.Is(err, fs.ErrNotExist) {
		rel = condemned(rel)
		if _, err := base.Lstat(rel); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	if err := prepareRemoval(base, rel); err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	if temp := condemned(rel); temp != rel {
		// A leftover of the same name stands in the way of the rename.
		if err := base.RemoveAll(temp); err != nil {
			return fmt.Errorf("remove %s: %w", path, err)
		}
		if err := base.Rename(rel, temp); err != nil {
			return fmt.Errorf("remove %s: %w", path, err)
		}
		rel = temp
	}
	shrink(base, rel)
	if err := base.RemoveAll(rel); err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return SyncDir(filepath.Dir(filepath.Join(root, rel)))
}

// Remains says whether something of a tree is there, under its own name or under that
// which it has while it is removed.
func Remains(path string) bool {
	for _, name := range []string{path, condemned(path)} {
		if _, err := Lstat(name); err == nil {
			return true
		}
	}
	return false
}

// condemned is the name that a tree has while it is removed.
func condemned(path string) string {
	if strings.HasSuffix(path, tempSuffix) {
		return path
	}
	return path + ".removed" + tempSuffix
}

// shrinkStep is what a large file loses at a time.
const shrinkStep = 16 << 20

// shrinkPauseMax bounds the pause after a step that took long.
const shrinkPauseMax = 100 * time.Millisecond

// shrink makes the large files of a condemned tree small. The kernel frees all blocks of
// a file in one go, and tells a disk that wants to know of them: for gigabytes that kept
// the commits of the databases beside waiting for 40 to 90 ms, over and over. At most half
// of the time goes to it. What fails here is RemoveAll's to report.
func shrink(base *Root, rel string) {
	_ = base.WalkDir(rel, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil
		}
		file, err := base.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return nil
		}
		defer file.Close()
		// A file with a second name lives on under that: it was not opened.
		info, err := file.Stat()
		if err != nil || info.Size() <= shrinkStep {
			return nil
		}
		for size := info.Size() - shrinkStep; size > 0; size -= shrinkStep {
			began := time.Now()
			if file.Truncate(size) != nil {
				return nil
			}
			time.Sleep(min(time.Since(began), shrinkPauseMax))
		}
		return nil
	})
}

// below gives path relative to root, by names.
func below(root, path string) (string, error) {
	absRoot, err := filepath.Abs(root)
	if err != nil {
		return "", err
	}
	absPath, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(absRoot, absPath)
	if err != nil || rel == "." || !filepath.IsLocal(rel) {
		return "", fmt.Errorf("%w %s", ErrOutside, root)
	}
	return rel, nil
}

// prepareRemoval refuses mounts inside of the tree, which may be anybody's, and
// opens folders that we own but may not write.
func prepareRemoval(base *Root, rel string) error {
	top, err := base.Lstat(rel)
	if err != nil || !top.IsDir() {
		return err
	}
	parent, err := base.Stat(filepath.Dir(rel))
	if err != nil {
		return err
	}
	device := deviceOf(parent)
	return base.WalkDir(rel, func(name string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENAMETOOLONG) {
			return nil // Opened below is what could be; RemoveAll reports the rest.
		}
		if err != nil || !entry.IsDir() {
			return ignoreMissing(err)
		}
		info, err := entry.Info()
		if errors.Is(err, syscall.ENAMETOOLONG) {
			return fs.SkipDir
		}
		if err != nil {
			return ignoreMissing(err)
		}
		if deviceOf(info) != device {
			return fmt.Errorf("%s is a mount point", name)
		}
		if info.Mode().Perm()&0o700 != 0o700 {
			_ = base.Chmod(name, 0o700)
		}
		return nil
	})
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func deviceOf(info fs.FileInfo) uint64 {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return uint64(st.Dev)
}

// escapeGlob takes the meaning from characters of a folder's name.
func escapeGlob(dir string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}
