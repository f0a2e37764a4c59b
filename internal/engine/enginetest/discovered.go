package enginetest

import (
	"slices"
	"sync"
	"testing"

	"kurabe"
)

// found are the versions of each engine: a package has one way to set up its own, and to
// look takes half a second of a processor.
var found = struct {
	sync.Mutex
	by map[kurabe.EngineName][]kurabe.EngineVersion
}{by: map[kurabe.EngineName][]kurabe.EngineVersion{}}

func discovered(t *testing.T, s Setup) []kurabe.EngineVersion {
	t.Helper()
	found.Lock()
	defer found.Unlock()
	if found.by[s.Engine] == nil {
		versions, err := s.Driver.Discover(t.Context())
		if err != nil {
			t.Fatalf("discover: %v", err)
		}
		found.by[s.Engine] = versions
	}
	return slices.Clone(found.by[s.Engine])
}
