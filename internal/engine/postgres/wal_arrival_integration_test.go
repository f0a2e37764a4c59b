//go:build integration

package postgres

import (
	"syscall"
	"testing"

	"kurabe/internal/proc"
)

// Of a follower that was promoted it is known by when all of its log was there, if it was looked
// at since that came, in this very run of its server.
func TestGroupLastWord(t *testing.T) {
	for name, c := range map[string]struct {
		seen, restarted bool
	}{
		"it was looked at since":     {seen: true},
		"more came after the look":   {},
		"it was started again since": {seen: true, restarted: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGroup(t)
			g.follows(t, 1)
			before := proc.Boottime()
			g.bed.MustQuery(t, "INSERT INTO ledger VALUES (1)")
			g.has(t, 1, 1)
			if at, err := g.d.LastWord(t.Context(), g.m[1]); at != 0 || err != nil {
				t.Fatalf("of a follower that was not promoted it says %d, %v", at, err)
			}
			g.kill(t, 0)
			if c.seen {
				until(t, "no more log to come", func() bool { return !g.look(t, 1).Following })
			}
			if c.restarted {
				g.end(t, 1, int(syscall.SIGINT))
				g.start(t, 1)
			}
			between := proc.Boottime()
			if err := g.d.Promote(t.Context(), g.m[1]); err != nil {
				t.Fatal(err)
			}
			at, err := g.d.LastWord(t.Context(), g.m[1])
			known := c.seen && !c.restarted
			if err != nil || known != (at != 0) || known && (at < before || at > between) {
				t.Errorf("the last word was given at %d, %v; want %v, from %d to %d", at, err, known, before, between)
			}
		})
	}
}
