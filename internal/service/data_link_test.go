package service

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestLinksToTheDataFolder: what an administrator has linked is resolved at the start, since
// nothing follows a link afterwards.
func TestLinksToTheDataFolder(t *testing.T) {
	if os.Getuid() == 0 {
		t.Setenv("KURABE_BOUND", t.TempDir()) // no second start of the program
	}
	base := t.TempDir()
	real, link, disk := filepath.Join(base, "real"), filepath.Join(base, "link"), filepath.Join(base, "disk")
	if err := errors.Join(os.Mkdir(real, 0o700), os.Symlink("real", link), os.Mkdir(disk, 0o700), os.Symlink(disk, filepath.Join(real, "instances"))); err != nil {
		t.Fatal(err)
	}
	data, err := (&HostConfig{Data: link}).enter()
	if err != nil || data != real {
		t.Fatalf("entered %s, %v", data, err)
	}
	for name, want := range map[string]string{"instances": disk, "snapshots": filepath.Join(real, "snapshots")} {
		if got := placeIn(data, name); got != want {
			t.Errorf("%s is %s", name, got)
		}
	}
}
