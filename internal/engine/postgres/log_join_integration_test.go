//go:build integration

package postgres

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"kurabe"
	"kurabe/internal/engine"
)

// A standby that is told how far the log is kept holds what comes after that through its own
// restartpoints; when it is promoted, the log goes on from there over several segments, and a
// snapshot of the former writer is brought to its time.
func TestLogGoesOn(t *testing.T) {
	g := newGroup(t)
	g.bed.Want.Log, g.m[0].Log = true, true
	first, second := newArchive(t, g.bed), newArchive(t, g.bed)
	step := func(a *archive) {
		t.Helper()
		if err := a.step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	step(first)
	k := &kept{b: g.bed, d: g.d, a: first, snapshot: filepath.Join(t.TempDir(), "snapshot")}
	var err error
	if k.copied, err = g.d.CopyRunning(t.Context(), g.m[0], engine.CopyRequest{Dir: k.snapshot}); err != nil {
		t.Fatal(err)
	}
	g.bed.MustQuery(t, "INSERT INTO ledger VALUES (1)")
	step(first)
	_, kept := first.newest()
	g.holdLog(t, 1, kept.Position)
	// What the service is not there to read: segments, and restartpoints that would let go.
	for n := range 4 {
		g.bed.MustQuery(t, fmt.Sprintf("INSERT INTO ledger VALUES (%d)", n+2))
		g.admin(t, 0, "SELECT pg_catalog.pg_switch_wal()", "CHECKPOINT")
		g.has(t, 1, []int{1, 2, 3, 4, 5}[:n+2]...)
		g.admin(t, 1, "CHECKPOINT")
	}
	g.holdLog(t, 1, kept.Position)
	g.kill(t, 0)
	if err := g.d.Promote(t.Context(), g.m[1]); err != nil {
		t.Fatal(err)
	}
	g.write(t, 1)
	if _, err := g.client(t.Context(), 1, "INSERT INTO ledger VALUES (6)"); err != nil {
		t.Fatal(err)
	}
	if second.log, err = g.d.OpenLog(t.Context(), g.m[1]); err != nil {
		t.Fatal(err)
	}
	if err := second.log.Resume(t.Context(), kept.Position); !errors.Is(err, engine.ErrLogGone) {
		t.Errorf("the log of another server is gone on with in its place: %v", err)
	}
	later := kept
	later.Position.File = kept.Position.File[:8] + "0000000F" + kept.Position.File[16:]
	if _, err := second.log.Continue(t.Context(), later); !errors.Is(err, engine.ErrElsewhere) {
		t.Errorf("behind the switch: %v", err)
	}
	if second.at, err = second.log.Continue(t.Context(), kept); err != nil || second.at.Offset != 0 || second.at.File != kept.Position.File {
		t.Fatalf("after %s it goes on from %s: %v", kept.Position, second.at, err)
	}
	step(second)
	if second.at.File < kept.Position.File[:16]+"FF" {
		t.Errorf("the log ends at %s, in the timeline of the former writer", second.at)
	}
	k.hasRows(t, second, kept.At, 6)
}

// A follower holds the log from a place on that it has, or that has not come in yet: it may be
// behind. From one that it has no more it holds nothing.
func TestHoldLog(t *testing.T) {
	g := newGroup(t)
	g.bed.Want.Log, g.m[0].Log = true, true
	a := newArchive(t, g.bed)
	g.bed.MustQuery(t, "INSERT INTO ledger VALUES (1)")
	if err := a.step(t.Context()); err != nil {
		t.Fatal(err)
	}
	g.has(t, 1, 1)
	here := a.at
	for _, c := range []struct {
		name, segment string
		slots         int
	}{
		{"ahead", "0000000F", 1},
		{"here", here.File[16:], 1},
		{"gone", "00000000", 0},
	} {
		at := here
		at.File = here.File[:16] + c.segment
		if err := g.d.DropLog(t.Context(), g.m[1]); err != nil {
			t.Fatal(err)
		}
		g.holdLog(t, 1, at)
		slots := 0
		err := g.d.withAdmin(t.Context(), g.m[1], func(conn *pgx.Conn) error {
			return conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_catalog.pg_replication_slots WHERE slot_name = $1", logSlot).Scan(&slots)
		})
		if err != nil || slots != c.slots {
			t.Errorf("%s: %d slots, %v", c.name, slots, err)
		}
	}
}

// hasRows brings the snapshot to the end of what another server's archive goes on with.
func (k *kept) hasRows(t *testing.T, second *archive, from time.Time, rows int) {
	t.Helper()
	r := k.a.request(t, k.copied.Position, from)
	_, r.After = second.newest()
	r.Joined, r.At = []string{second.dir}, r.After.At
	have := map[int]bool{}
	if err := k.d.replay(t.Context(), k.b.Instance(), restored(t, k.b, k.snapshot), r, readLedger(have)); err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= rows; n++ {
		if !have[n] {
			t.Errorf("row %d is missing of %v", n, have)
		}
	}
}

// holdLog has a follower keep its log from a position on.
func (g *group) holdLog(t *testing.T, n int, from kurabe.LogPosition) {
	t.Helper()
	h, err := g.d.OpenLogHolder(t.Context(), g.m[n])
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if err := h.Hold(t.Context(), from); err != nil {
		t.Fatal(err)
	}
}

// admin runs statements as the service.
func (g *group) admin(t *testing.T, n int, statements ...string) {
	t.Helper()
	err := g.d.withAdmin(t.Context(), g.m[n], func(conn *pgx.Conn) error { return execAll(t.Context(), conn, statements) })
	if err != nil {
		t.Fatal(err)
	}
}
