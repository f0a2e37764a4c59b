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
	t.Setenv("TMPDIR", t.TempDir()) // what is wrong is drawn there, which nobody has to see here
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

// TestNoticesTwoWriters: servers that go on when their lease is over, and acknowledge alone, are
// found by their acknowledgements.
func TestNoticesTwoWriters(t *testing.T) {
	const seeds, length = 10, 5 * time.Minute
	pair := shape{kurabe.Postgres, 3, false, false}
	for seed := range uint64(seeds) {
		r := run(t, pair, seed, length, func(w *world) { w.hosts[0].engine.Break(fake.AcksAlone | fake.Outlives) })
		if wrong := two(r.history.acks); len(wrong) > 0 {
			t.Logf("seed %d: %d, of which the first: %s", seed, len(wrong), wrong[0])
			return
		}
	}
	t.Error("nobody has noticed")
}

// TestTwo: who is found, of some acknowledgements.
func TestTwo(t *testing.T) {
	for name, c := range map[string]struct {
		acks  []ack
		wrong int
	}{
		"one":                              {[]ack{{"a", 1, 2}, {"a", 3, 4}}, 0},
		"one after the other":              {[]ack{{"a", 1, 2}, {"b", 3, 4}, {"b", 5, 6}}, 0},
		"what was begun before is told":    {[]ack{{"a", 1, 2}, {"a", 3, 9}, {"b", 4, 5}}, 0},
		"the first one goes on":            {[]ack{{"a", 1, 2}, {"b", 3, 4}, {"a", 5, 6}}, 1},
		"each goes on, as others call it":  {[]ack{{"a", 1, 2}, {"b", 3, 4}, {"a", 5, 6}, {"b", 7, 8}}, 1},
		"they are noted in another order":  {[]ack{{"a", 5, 6}, {"b", 3, 4}, {"a", 1, 2}}, 1},
		"a third one, and the second goes": {[]ack{{"a", 1, 2}, {"b", 3, 4}, {"c", 5, 6}, {"b", 7, 8}}, 1},
	} {
		if wrong := two(c.acks); len(wrong) != c.wrong {
			t.Errorf("%s: %v", name, wrong)
		}
	}
}
