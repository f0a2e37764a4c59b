package volume

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// tempSuffix marks what is not complete, or not wanted any more.
const tempSuffix = ".tmp"

// AtomicWrite replaces a file. After a crash it holds the old content or the new,
// and once AtomicWrite has returned, the new, even if the power fails. A reader
// never sees a part.
func AtomicWrite(path string, data []byte, mode os.FileMode) error {
	return atomicWrite(path, data, mode, func(*os.File) error { return nil })
}

// AtomicWriteOwned is AtomicWrite of a file of another user or group; -1 is left alone. It has
// its owner when it gets its name: whoever may read it can, whatever we die of.
func AtomicWriteOwned(path string, data []byte, mode os.FileMode, to Owner) error {
	return atomicWrite(path, data, mode, to.Own)
}

func atomicWrite(path string, data []byte, mode os.FileMode, own func(*os.File) error) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("write %s: %w", path, err)
		}
	}()
	// Made with mode 0600, so a secret is at no moment readable for others.
	file, err := CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*"+tempSuffix)
	if err != nil {
		return err
	}
	temp := file.Name()
	_, err = file.Write(data)
	err = errors.Join(err, own(file), file.Chmod(mode), file.Sync(), file.Close())
	if err == nil {
		err = Rename(temp, path)
	}
	if err != nil {
		_ = Remove(temp)
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// SyncDir makes the names in a folder last: a rename is safe only after it.
func SyncDir(path string) error {
	dir, err := OpenDir(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// EnsureDir makes a folder, its parents included, and gives it this mode and
// owner. A uid or gid of -1 is left alone; giving to others needs root.
func EnsureDir(path string, mode os.FileMode, uid, gid int) error {
	if err := MkdirAll(path, mode); err != nil {
		return err
	}
	dir, err := OpenDir(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	// chown first: it may clear mode bits.
	if uid != -1 || gid != -1 {
		if err := dir.Chown(uid, gid); err != nil {
			return err
		}
	}
	return dir.Chmod(mode)
}

// HasDir says whether a folder is there as EnsureDir leaves it. One that whoever made it
// died over is not: it is there before it has its mode and owner.
func HasDir(path string, mode os.FileMode, uid, gid int) bool {
	info, err := Lstat(path)
	if err != nil || !info.IsDir() {
		return false
	}
	owner := OwnerOf(info)
	return info.Mode().Perm() == mode && (uid == -1 || owner.UID == uid) && (gid == -1 || owner.GID == gid)
}

// Clean removes what crashes have left in a folder, and names it.
func Clean(dir string) ([]string, error) {
	entries, err := ReadDir(dir)
	if err != nil {
		return nil, ignoreMissing(err)
	}
	var leftovers []string
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), tempSuffix) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		leftovers = append(leftovers, path)
		if err := RemoveTree(dir, path); err != nil {
			return nil, fmt.Errorf("clean %s: %w", dir, err)
		}
	}
	return leftovers, nil
}
