package simulated

import (
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/engine/fake"
)

// TestNotices: what the checker is there for is noticed when it is taken away, by what the
// clients saw.
func TestNotices(t *testing.T) {
	const seeds, length = 10, 5 * time.Minute
	pair, alone := shape{kurabe.Postgres, 3, false, false}, shape{kurabe.MariaDB, 1, false, false}
	for name, c := range map[string]struct {
		shape
		flaw func(*world)
	}{
		"commits are acknowledged without the standby": {pair, func(w *world) { w.hosts[0].engine.Break(fake.AcksAlone) }},
		"the same on one host":                         {alone, func(w *world) { w.hosts[0].engine.Break(fake.AcksAlone) }},
		"a standby answers for what it lacks":          {pair, func(w *world) { w.hosts[0].engine.Break(fake.Lies) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(seeds) {
				if wrong, _ := run(t, c.shape, seed, length, c.flaw).wrong(); len(wrong) > 0 {
					t.Logf("seed %d: %d, of which the first: %s", seed, len(wrong), wrong[0])
					return
				}
			}
			t.Error("nobody has noticed")
		})
	}
}
