package volume

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestDeepTree: folders in folders are no way to be left out, or to stay for ever.
func TestDeepTree(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "deep")
	deepen(t, dir, 3*walkHoldMax)
	count, held := 0, 0
	err := WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		count++
		open, err := os.ReadDir("/proc/self/fd")
		held = max(held, len(open))
		_, infoErr := entry.Info()
		return errors.Join(err, infoErr)
	})
	if err != nil || count != 3*walkHoldMax+2 || held > 2*walkHoldMax {
		t.Errorf("walked %d, with %d open, %v", count, held, err)
	}
	// Deeper than a path can tell.
	deepen(t, filepath.Join(base, "deeper"), 3000)
	if err := errors.Join(RemoveTree(base, dir), RemoveTree(base, filepath.Join(base, "deeper"))); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(base); err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// deepen makes folders in folders, and a file in the last.
func deepen(t *testing.T, dir string, depth int) {
	t.Helper()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_PATH, 0)
	for range depth {
		var next int
		err = errors.Join(err, unix.Mkdirat(fd, "d", 0o700))
		if err == nil {
			next, err = unix.Openat(fd, "d", unix.O_DIRECTORY|unix.O_PATH, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		_ = unix.Close(fd)
		fd = next
	}
	last, err := unix.Openat(fd, "file", unix.O_CREAT|unix.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = unix.Close(fd), unix.Close(last)
}
