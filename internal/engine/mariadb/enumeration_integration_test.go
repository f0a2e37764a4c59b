//go:build integration

package mariadb

import (
	"testing"

	"kurabe/internal/engine/enginetest"
)

// A server takes the number of an enumeration's word, at the start and while it runs.
func TestNumbersOfEnumerations(t *testing.T) {
	b := enginetest.NewBed(t, setup(t, enginetest.Reachable(t)))
	b.Set(map[string]string{"event_scheduler": "1", "tx_isolation": "1", "concurrent_insert": "2"})
	b.Satisfy(t)
	const ask = "SELECT CONCAT_WS(' ', @@GLOBAL.event_scheduler, @@GLOBAL.tx_isolation, @@GLOBAL.concurrent_insert)"
	if got := b.MustQuery(t, ask); got != "1 READ-COMMITTED ALWAYS" && got != "ON READ-COMMITTED ALWAYS" {
		t.Errorf("at the start: %s", got)
	}
	b.Set(map[string]string{"event_scheduler": "0", "tx_isolation": "2", "concurrent_insert": "0"})
	b.Satisfy(t)
	if got := b.MustQuery(t, ask); got != "0 REPEATABLE-READ NEVER" && got != "OFF REPEATABLE-READ NEVER" {
		t.Errorf("while it runs: %s", got)
	}
}
