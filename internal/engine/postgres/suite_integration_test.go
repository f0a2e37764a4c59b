//go:build integration

package postgres

import (
	"testing"

	"kurabe/internal/engine/enginetest"
)

func TestSuite(t *testing.T) { enginetest.Run(t, setup(t, enginetest.Reachable(t))) }

func TestLongBarredPath(t *testing.T) { enginetest.LongBarredPath(t, setup) }

func TestSamplersOfAHungServer(t *testing.T) {
	enginetest.RunHang(t, setup(t, enginetest.Reachable(t)))
}
