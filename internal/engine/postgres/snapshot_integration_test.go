//go:build integration

package postgres

import (
	"testing"

	"kurabe/internal/engine/enginetest"
)

func TestSnapshots(t *testing.T) { enginetest.RunSnapshots(t, setup(t, reachable(t))) }

func TestSnapshotsCloned(t *testing.T) {
	enginetest.RunClones(t, setup(t, enginetest.LoopXFS(t, reachable(t))))
}

func TestTakeInChild(t *testing.T) {
	enginetest.TakeInChild(t, func(root string) enginetest.Setup { return setup(t, root) })
}
