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

// onceIsEnough skips in the suite's second run, without root, what takes as long there and
// asks for no rights. That run is there for the service: its folders, processes, addresses
// and limits. Of what is done with them one test of each kind is enough there:
// TestLabOnAPrivateService, TestLabOnAURL and TestLabGoesThroughPgBouncer of the lab,
// TestMultiAZ and TestDeleteMultiAZ of two servers, TestImportFromTheRepository and
// TestImportOfRetainedBackups of the repository.
func onceIsEnough(t *testing.T) {
	t.Helper()
	if os.Getenv("KURABE_TEST_UNPRIVILEGED") != "" {
		t.Skip("runs with root only, where it takes as long")
	}
}

// eachEngineBeside runs a test for both engines at once, each on a service that it makes
// itself. It is for one that waits more than it computes, and that neither measures nor
// bounds how long something takes.
func eachEngineBeside(t *testing.T, test func(t *testing.T, engine string)) {
	t.Helper()
	shared(t).EachEngine(t, func(t *testing.T, engine string) {
		t.Parallel()
		test(t, engine)
	})
}
