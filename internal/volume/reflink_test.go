package volume

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Runs where TMPDIR is on XFS or btrfs.
func TestCopyTreeClones(t *testing.T) {
	dir := t.TempDir()
	clones := Reflink(dir)
	if got := names(t, dir); got != "" {
		t.Errorf("the probe left %s", got)
	}
	if !clones {
		t.Skip("no reflink in " + dir)
	}
	src := filepath.Join(dir, "src")
	const size = 32 << 20
	write(t, src+"/f", strings.Repeat("x", size), 0o600)
	if err := syncFS(dir); err != nil {
		t.Fatal(err)
	}
	before, err := FreeBytes(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := CopyTree(context.Background(), src, src+"2", CopyOptions{UID: -1, GID: -1, Sync: true}); err != nil {
		t.Fatal(err)
	}
	after, err := FreeBytes(dir)
	if err != nil || before-after > size/4 {
		t.Errorf("the clone took %d bytes, %v", before-after, err)
	}
	// The two are independent.
	if err := os.WriteFile(src+"2/f", []byte("y"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := read(t, src+"/f"); len(got) != size || got[0] != 'x' {
		t.Error("writing to the clone changed the source")
	}
}
