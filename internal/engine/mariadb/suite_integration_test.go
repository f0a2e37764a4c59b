//go:build integration

package mariadb

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kurabe/internal/engine/enginetest"
)

func TestSuite(t *testing.T) { enginetest.Run(t, setup(t, enginetest.Reachable(t))) }

// A path longer than a socket address, below a folder that only root may enter:
// the admin socket is dialled through a descriptor and the server works behind
// a bind mount.
func TestLongBarredPath(t *testing.T) {
	root := filepath.Join(enginetest.Reachable(t), strings.Repeat("long-", 20), strings.Repeat("path-", 20))
	if err := os.MkdirAll(root, 0o700); err != nil {
		t.Fatal(err)
	}
	b := enginetest.NewBed(t, setup(t, root))
	b.Satisfy(t)
	b.MustQuery(t, "SELECT 1")
}

func TestSamplersOfAHungServer(t *testing.T) {
	enginetest.RunHang(t, setup(t, enginetest.Reachable(t)))
}
