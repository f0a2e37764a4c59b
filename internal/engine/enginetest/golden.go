package enginetest

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"kurabe/internal/harness"
	"kurabe/internal/proc"
)

// update is registered by Main, so that a package with a flag of its own by that
// name can use the rest of this one.
var update *bool

// Main is the TestMain of an engine's package: the test binary plays the shim
// when it is started as one, knows -update, and runs contained, so that no server outlives
// it, however it ends.
func Main(m *testing.M) {
	if proc.IsShim() {
		proc.ShimMain()
	}
	update = flag.Bool("update", false, "rewrite the golden files")
	os.Exit(harness.Contained(func() int { return run(m) }))
}

// sharedEnv names the shared folder to the test binaries that this one starts.
const sharedEnv = "KURABE_ENGINETEST_SHARED"

func run(m *testing.M) int {
	if os.Getenv(sharedEnv) == "" {
		dir, err := os.MkdirTemp("", "kurabe-engines-")
		if err == nil {
			err = errors.Join(os.Chmod(dir, 0o755), os.Setenv(sharedEnv, dir))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
	}
	return m.Run()
}

// Shared is a folder below one that all tests of a package have in common, for what
// takes seconds to make and never changes: templates, PostgreSQL's trees.
func Shared(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv(sharedEnv)
	if dir == "" {
		t.Fatal("the package's TestMain is not enginetest.Main")
	}
	return filepath.Join(dir, name)
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
