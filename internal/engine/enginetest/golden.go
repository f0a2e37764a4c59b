package enginetest

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"kurabe/internal/proc"
)

// update is registered by Main, so that a package with a flag of its own by that
// name can use the rest of this one.
var update *bool

// Main is the TestMain of an engine's package: the test binary plays the shim
// when it is started as one, and knows -update.
func Main(m *testing.M) {
	if proc.IsShim() {
		proc.ShimMain()
	}
	update = flag.Bool("update", false, "rewrite the golden files")
	os.Exit(m.Run())
}

// Golden compares a text with the file of that name in testdata, or writes it
// there with -update. The package's TestMain must be Main.
func Golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; run with -update and look at the change\n%s", path, got)
	}
}
