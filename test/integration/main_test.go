//go:build integration

package integration

import (
	"os"
	"sync"
	"testing"

	"kurabe/internal/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

var (
	sharedOnce    sync.Once
	sharedService *harness.Service
)

// shared is a service for the tests that do not stop it.
func shared(t *testing.T) *harness.Service {
	t.Helper()
	sharedOnce.Do(func() { sharedService = harness.Start(t, harness.Options{Shared: true}) })
	if sharedService == nil {
		t.Fatal("the shared service did not start")
	}
	return sharedService
}

// needRoot skips what only root can do.
func needRoot(t *testing.T) {
	t.Helper()
	if !harness.Root() {
		t.Skip("limits and mounts need root")
	}
}

// onceIsEnough skips a long study or load in the suite's second run, without root: that
// one is there for the service, and for the lab TestLabOnAPrivateService and
// TestLabOnAURL are.
func onceIsEnough(t *testing.T) {
	t.Helper()
	if os.Getenv("KURABE_TEST_UNPRIVILEGED") != "" {
		t.Skip("runs with root only, where it takes as long")
	}
}
