package harness

import (
	"os"
	"sync"
	"testing"

	"kurabe/internal/proc"
	"kurabe/internal/warden"
)

// Main runs the tests of a package, contained.
func Main(m *testing.M) {
	if proc.IsShim() {
		proc.ShimMain()
	}
	if warden.IsWarden() {
		warden.Main()
	}
	EtcdMain()
	os.Exit(Contained(func() int {
		code := m.Run()
		endAll()
		return code
	}))
}

// Root says if the tests run as root.
func Root() bool { return os.Getuid() == 0 }

// Whole says whether tests are to do all that they can, and not only what fits into the time of
// `make test`: KURABE_WHOLE is set, as `make fault` does.
func Whole() bool { return os.Getenv("KURABE_WHOLE") != "" }

var (
	endingMu sync.Mutex // guards ending
	ending   []func()
)

// atEnd has a function called once all tests have run, last one first.
func atEnd(f func()) {
	endingMu.Lock()
	defer endingMu.Unlock()
	ending = append(ending, f)
}

func endAll() {
	for {
		endingMu.Lock()
		if len(ending) == 0 {
			endingMu.Unlock()
			return
		}
		last := ending[len(ending)-1]
		ending = ending[:len(ending)-1]
		endingMu.Unlock()
		last()
	}
}
