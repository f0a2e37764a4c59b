//go:build integration

package volume_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"kurabe/internal/volume"
)

// loopXFS mounts a file system that clones until the test ends.
func loopXFS(t *testing.T) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("mounting an image needs root")
	}
	dir := t.TempDir()
	image, at := filepath.Join(dir, "image"), filepath.Join(dir, "xfs")
	const size = 1 << 30 // sparse
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, size), os.Mkdir(at, 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, argv := range [][]string{{"/usr/sbin/mkfs.xfs", "-q", "-m", "reflink=1", image}, {"/usr/bin/mount", "-o", "loop", image, at}} {
		if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			t.Skipf("no file system that clones: %s: %v: %s", argv[0], err, out)
		}
	}
	t.Cleanup(func() {
		if out, err := exec.Command("/usr/bin/umount", at).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	return at
}

// TestTransferOnXFS: a tree of files of all lengths is cloned in parts, made durable,
// and what is written over in place ends sharing its blocks; both sides are then their
// own.
func TestTransferOnXFS(t *testing.T) {
	dir := loopXFS(t)
	src, dst := filepath.Join(dir, "src"), filepath.Join(dir, "dst")
	if err := os.Mkdir(src, 0o700); err != nil {
		t.Fatal(err)
	}
	random := rand.NewChaCha8([32]byte{})
	content := map[string][]byte{}
	for name, size := range map[string]int{"empty": 0, "one": 1, "part": 8<<20 - 1, "parts": 8 << 20, "more": 16<<20 + 4097, "log": 3 << 20} {
		content[name] = make([]byte, size)
		_, _ = random.Read(content[name])
		if err := os.WriteFile(filepath.Join(src, name), content[name], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files, cloned, err := volume.Transfer(t.Context(), src, dst, volume.TransferOptions{})
	if err != nil || !cloned || len(files) != len(content) {
		t.Fatalf("%+v, cloned %v, %v", files, cloned, err)
	}
	if slices.ContainsFunc(files, func(f volume.File) bool { return f.Cloned != (f.Size > 0) }) {
		t.Errorf("%+v", files)
	}
	if err := volume.SyncTransferred(dst, files); err != nil {
		t.Fatal(err)
	}
	own := func() int64 {
		t.Helper()
		bytes, err := volume.OwnBytes(dst)
		if err != nil {
			t.Fatal(err)
		}
		return bytes
	}
	if before := own(); before > 1<<20 {
		t.Errorf("the clone has %d bytes of its own", before)
	}
	if err := volume.Unshare(t.Context(), filepath.Join(dst, "log"), volume.NewPace(0)); err != nil {
		t.Fatal(err)
	}
	if after := own(); after < 3<<20 || after > 5<<20 {
		t.Errorf("%d bytes of its own after one file of 3 MiB was unshared", after)
	}
	for name := range content {
		if err := os.WriteFile(filepath.Join(src, name), []byte("written over"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(dst)
	if err != nil || len(entries) != len(content) {
		t.Errorf("%v, %v", entries, err)
	}
	for name, want := range content {
		if got, err := os.ReadFile(filepath.Join(dst, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what it was: %d bytes, %v", name, len(got), err)
		}
	}
}
