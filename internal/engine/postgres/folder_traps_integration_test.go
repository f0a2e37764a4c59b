//go:build integration

package postgres

import (
	"testing"

	"kurabe/internal/engine/enginetest"
)

func TestTenantsTraps(t *testing.T) {
	enginetest.RunTraps(t, setup(t, enginetest.Reachable(t)))
}
