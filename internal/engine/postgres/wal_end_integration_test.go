//go:build integration

package postgres

import (
	"syscall"
	"testing"
)

// TestLogEnd: where a clean stop leaves the log is where its follower comes to be, to the byte.
// After a death nobody can tell.
func TestLogEnd(t *testing.T) {
	g := newGroup(t)
	for range 3 {
		g.bed.MustQuery(t, "INSERT INTO ledger SELECT n, repeat('x', 500) FROM generate_series((SELECT count(*) FROM ledger) + 1, (SELECT count(*) FROM ledger) + 100) n")
		g.end(t, 0, g.d.StopSignal())
		end, err := g.d.LogEnd(t.Context(), g.m[0])
		if err != nil || end == 0 {
			t.Fatal(end, err)
		}
		until(t, "follower that has all", func() bool { return g.look(t, 1).Position >= end })
		if v := g.look(t, 1); v.Position-end >= 8 || v.Kept != v.Position { // the next record begins at a multiple of 8
			t.Errorf("the log ends at %d, and its follower has %+v", end, v)
		}
		g.start(t, 0)
		g.follows(t, 1)
	}
	g.end(t, 0, int(syscall.SIGKILL))
	if end, err := g.d.LogEnd(t.Context(), g.m[0]); err == nil {
		t.Errorf("after a death it ends at %d", end)
	}
}
