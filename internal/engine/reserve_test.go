package engine

import (
	"os"
	"path/filepath"
	"testing"

	"kurabe"
	"kurabe/internal/volume"
)

func TestReserveBytes(t *testing.T) {
	for _, c := range []struct{ disk, want int64 }{
		{0, 0}, {1 << 30, 128 << 20}, {2 << 30, 256 << 20}, {10 << 30, 256 << 20}, {100 << 30, 1 << 30}, {1 << 44, 4 << 30},
	} {
		if got := reserveBytes(c.disk); got != c.want {
			t.Errorf("a disk of %s: %s, want %s", kurabe.FormatBytes(c.disk), kurabe.FormatBytes(got), kurabe.FormatBytes(c.want))
		}
	}
}

// The reserve really takes space, also when it was made by half, and a make that
// fails takes none.
func TestReserve(t *testing.T) {
	dir := t.TempDir()
	l := NewLifecycle(Config{Homes: filepath.Join(dir, "instances")}, nil)
	made, err := l.Reserve()
	if err != nil || made.Bytes() == 0 {
		t.Fatal(made, err)
	}
	r := made.(*fileReserve)
	r.bytes = 8 << 20
	if r.Held() {
		t.Error("held before it is made")
	}
	if err := os.WriteFile(r.path, make([]byte, 4096), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if r.Held() {
			t.Error("half of it counts as held")
		}
		if err := r.Make(); err != nil {
			t.Fatal(err)
		}
		if used, err := volume.UsedBytes(dir); err != nil || used < r.bytes || !r.Held() {
			t.Errorf("%d bytes are taken, held %v, %v", used, r.Held(), err)
		}
		for range 2 {
			if err := r.Free(); err != nil {
				t.Error(err)
			}
		}
		if used, err := volume.UsedBytes(dir); err != nil || used >= r.bytes {
			t.Errorf("%d bytes are still taken, %v", used, err)
		}
	}
	r.bytes = 1 << 50
	if err := r.Make(); err == nil {
		t.Error("more than the disk was reserved")
	}
	if _, err := os.Lstat(r.path); err == nil {
		t.Error("a make that failed left a file")
	}
	if _, err := NewLifecycle(Config{Homes: filepath.Join(dir, "absent", "instances")}, nil).Reserve(); err == nil {
		t.Error("a folder that is not there has a reserve")
	}
}
