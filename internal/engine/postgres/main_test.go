package postgres

import (
	"flag"
	"os"
	"testing"

	"kurabe/internal/proc"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestMain lets the test binary play the shim.
func TestMain(m *testing.M) {
	if proc.IsShim() {
		proc.ShimMain()
	}
	os.Exit(m.Run())
}
