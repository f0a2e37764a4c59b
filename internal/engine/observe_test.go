package engine

import (
	"os"
	"path/filepath"
	"testing"
)

// TestSettingsOfAnotherGroup: what the engine cannot read is not current, whatever is in it.
func TestSettingsOfAnotherGroup(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("without root the engine is of the service's own group")
	}
	dir, gid := t.TempDir(), os.Getgid()
	if err := os.WriteFile(filepath.Join(dir, "a.conf"), []byte("x"), 0o640); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"a.conf": "x"}
	if !current(dir, files, gid) {
		t.Error("a file of the engine's group is not current")
	}
	if current(dir, files, gid+1) {
		t.Error("a file of another group is current")
	}
}
