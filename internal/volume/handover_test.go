package volume

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func ownedBy(t *testing.T, path string, uid, gid int) {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		t.Fatal(err)
	}
	if int(st.Uid) != uid || int(st.Gid) != gid {
		t.Errorf("%s is of %d:%d, want %d:%d", path, st.Uid, st.Gid, uid, gid)
	}
}

// TestHandOver: what is root's stays, links are given and not followed, and a file that
// has a name elsewhere stops it before anything is given.
func TestHandOver(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	const old, next = 654_101, 654_102
	dir := t.TempDir()
	home, witness, elsewhere := filepath.Join(dir, "home"), filepath.Join(dir, "witness"), filepath.Join(dir, "elsewhere")
	data := filepath.Join(home, "data")
	file, link, conf, twice := filepath.Join(data, "file"), filepath.Join(data, "link"), filepath.Join(home, "conf"), filepath.Join(data, "twice")
	err := errors.Join(os.MkdirAll(data, 0o700), os.WriteFile(file, nil, 0o600), os.WriteFile(witness, nil, 0o600), os.WriteFile(elsewhere, nil, 0o600),
		os.Symlink(witness, link), os.WriteFile(conf, nil, 0o640), os.Link(file, twice), syscall.Mkfifo(filepath.Join(data, "pipe"), 0o600),
		os.Chown(home, 0, old), os.Chown(conf, 0, old), os.Chown(data, old, old), os.Lchown(link, old, old), os.Chown(file, old, old), os.Chown(elsewhere, old, old))
	if err != nil {
		t.Fatal(err)
	}
	planted := filepath.Join(data, "planted")
	if err := os.Link(elsewhere, planted); err != nil {
		t.Fatal(err)
	}
	if err := HandOver(home, Owner{next, next}); !errors.Is(err, ErrSecondName) {
		t.Errorf("a file with a name elsewhere was given: %v", err)
	}
	ownedBy(t, elsewhere, old, old)
	ownedBy(t, data, old, old)
	if err := os.Remove(planted); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := HandOver(home, Owner{next, next}); err != nil {
			t.Fatal(err)
		}
	}
	ownedBy(t, witness, 0, 0)
	ownedBy(t, home, 0, next)
	ownedBy(t, conf, 0, next)
	for _, path := range []string{data, file, link, twice, filepath.Join(data, "pipe")} {
		if path != filepath.Join(data, "pipe") { // made by root here
			ownedBy(t, path, next, next)
		}
	}
}
