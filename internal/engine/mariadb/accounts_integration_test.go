//go:build integration

package mariadb

import (
	"testing"

	"kurabe/internal/engine/enginetest"
)

func TestAccounts(t *testing.T) { enginetest.RunAccounts(t, setup(t, enginetest.Reachable(t))) }

func TestTakeOver(t *testing.T) { enginetest.RunTakeOver(t, setup(t, enginetest.Reachable(t))) }

func TestHandOverInChild(t *testing.T) {
	enginetest.HandOverInChild(t, func(root string) enginetest.Setup { return setup(t, root) })
}
