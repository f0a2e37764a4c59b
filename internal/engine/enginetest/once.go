package enginetest

import (
	"os"
	"testing"
)

// OnceIsEnough skips a test in the suite's second run, without root, where it takes as
// long and can say nothing new: what it looks at happens inside a server, or between two
// of them over TLS. What rights decide is tested in both runs: whose the files, keys and
// processes of a server are, who comes in by its socket, and what is made of its folder.
func OnceIsEnough(t testing.TB) {
	t.Helper()
	if os.Getenv("KURABE_TEST_UNPRIVILEGED") != "" {
		t.Skip("runs with root only; it asks for no rights")
	}
}
