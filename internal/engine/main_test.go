package engine

import (
	"os"
	"testing"

	"kurabe/internal/proc"
)

// TestMain lets the test binary play the shim that starts servers.
func TestMain(m *testing.M) {
	if proc.IsShim() {
		proc.ShimMain()
	}
	os.Exit(m.Run())
}
