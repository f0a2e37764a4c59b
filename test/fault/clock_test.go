//go:build fault

package fault

import (
	"testing"
	"time"

	"kurabe/internal/harness"
)

// TestClockGoesBack sets the clock of service, server and clients back by an hour. The
// log has a gap that is told, another run begins, clients notice nothing, and what was
// acknowledged before is restored exactly. Moments that have not been yet are refused.
func TestClockGoesBack(t *testing.T) {
	c := newClock(t)
	s := harness.Start(t, harness.Options{Args: []string{"--copy-rate", "0"}})
	// MariaDB waits until a time of the kernel's clock, which stays as it is, and would
	// turn without a rest.
	s.NeedEngine(t, "postgres", s.Engines(t))
	b := newLogBed(t, s, "postgres")
	before := b.grows(t)
	b.grows(t)
	c.set(t, -time.Hour)
	b.i.WaitEvent(t, "its latest restorable time stands still until the next automated snapshot: the clock went back")
	b.i.WaitEvent(t, "is followed again")
	b.waitRows(t, 0, time.Second)
	b.unnoticed(t)
	b.refused(t, time.Now().Add(30*time.Minute), "")
	b.compareAt(t, before)
	b.i.Delete(t)
	noOrphans(t, s)
}

// compareAt restores to a moment before the clock went back. Which rows were written
// by then their numbers say: those after it have earlier times.
func (b *logBed) compareAt(t *testing.T, at time.Time) {
	t.Helper()
	before, turned := &momentBed{s: b.s, i: b.i}, false
	for n, r := range b.acked() {
		r.acked = r.acked.Round(0) // as it was read, not as it went on
		if n > 0 && !turned && r.acked.Before(before.rows[n-1].acked) {
			turned = true
		}
		if turned {
			r.at, r.acked = r.at.Add(time.Hour), r.acked.Add(time.Hour)
		}
		before.rows = append(before.rows, r)
	}
	if !turned {
		t.Fatal("the client's clock never went back")
	}
	before.restore(t, "first-"+b.i.Engine, at.Round(0))
}
