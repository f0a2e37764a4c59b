//go:build integration

package mariadb

import (
	"testing"

	"kurabe/internal/engine/enginetest"
)

func TestSnapshots(t *testing.T) { enginetest.RunSnapshots(t, setup(t, enginetest.Reachable(t))) }

func TestSnapshotsCloned(t *testing.T) {
	enginetest.RunClones(t, setup(t, enginetest.LoopXFS(t, enginetest.Reachable(t))))
}

func TestTakeInChild(t *testing.T) {
	enginetest.TakeInChild(t, func(root string) enginetest.Setup { return setup(t, root) })
}
