package volume_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"kurabe/internal/volume"
)

// TestWriteSpared: texts of any length follow each other, and nothing stays behind.
func TestWriteSpared(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "order.json")
	for _, size := range []int{1, 2, 16 << 10, 3, 40 << 10, 16<<10 + 1, 0, 5} {
		want := bytes.Repeat([]byte("x"), size)
		if err := volume.WriteSpared(path, want, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(bytes.TrimRight(got, "\n"), want) {
			t.Errorf("%d bytes became %d, %v", size, len(bytes.TrimRight(got, "\n")), err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
	}
	for range 2 {
		if err := volume.RemoveSpared(path); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// A spare that somebody else put there is not written to.
func TestWriteSparedFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	path, foreign := filepath.Join(dir, "order.json"), filepath.Join(dir, "foreign")
	content := bytes.Repeat([]byte("f"), 16<<10)
	if err := os.WriteFile(foreign, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(foreign, filepath.Join(dir, ".order.json.spare")); err != nil {
		t.Fatal(err)
	}
	if err := volume.WriteSpared(path, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(foreign); err != nil || !bytes.Equal(got, content) {
		t.Errorf("a foreign file was written: %v", err)
	}
}
