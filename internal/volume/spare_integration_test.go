//go:build integration

package volume_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"kurabe/internal/volume"
)

// TestWriteSparedOnFullDisk: what AtomicWrite cannot write any more is written, again
// and again, on the file systems that databases lie on.
func TestWriteSparedOnFullDisk(t *testing.T) {
	for kind, mount := range map[string]func(*testing.T) string{"xfs": loopXFS, "ext4": loopExt4} {
		t.Run(kind, func(t *testing.T) {
			dir := mount(t)
			path := filepath.Join(dir, "order.json")
			if err := volume.WriteSpared(path, []byte("first"), 0o600); err != nil {
				t.Fatal(err)
			}
			fill(t, dir)
			if err := volume.AtomicWrite(filepath.Join(dir, "other"), bytes.Repeat([]byte("x"), 16<<10), 0o600); !errors.Is(err, unix.ENOSPC) {
				t.Fatalf("the disk is not full: %v", err)
			}
			for n := range 20 {
				want := fmt.Sprint("on a full disk ", n)
				if err := volume.WriteSpared(path, []byte(want), 0o600); err != nil {
					t.Fatal(err)
				}
				if got, err := os.ReadFile(path); err != nil || string(bytes.TrimRight(got, "\n")) != want {
					t.Fatalf("%.40q, %v; want %q", got, err, want)
				}
			}
		})
	}
}

func loopExt4(t *testing.T) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("mounting an image needs root")
	}
	dir := t.TempDir()
	image, at := filepath.Join(dir, "image"), filepath.Join(dir, "ext4")
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, 64<<20), os.Mkdir(at, 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, argv := range [][]string{{"/usr/sbin/mkfs.ext4", "-q", "-m", "0", image}, {"/usr/bin/mount", "-o", "loop", image, at}} {
		if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			t.Skipf("no loop device: %s: %v: %s", argv[0], err, out)
		}
	}
	t.Cleanup(func() {
		if out, err := exec.Command("/usr/bin/umount", at).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	return at
}

// fill takes every block and every inode.
func fill(t *testing.T, dir string) {
	t.Helper()
	file, err := os.Create(filepath.Join(dir, "fill"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for piece := 1 << 20; piece >= 512; {
		if _, err := file.Write(make([]byte, piece)); err != nil {
			piece /= 2
		}
	}
	if err := file.Sync(); err != nil && !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	for n := range 10_000 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("small", n)), []byte("x"), 0o600); err != nil {
			return
		}
	}
	t.Fatal("the disk does not fill")
}
