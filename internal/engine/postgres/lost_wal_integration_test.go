//go:build integration

package postgres

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/enginetest"
)

// outrun has the writer give up log that a follower lacks which is away: what a slot may
// hold back is set to next to nothing, some segments are written, and a checkpoint removes
// them.
func (g *group) outrun(t *testing.T, n int) {
	t.Helper()
	conf := filepath.Join(g.m[n].Home.ConfDir(), settingsFile)
	text, err := os.ReadFile(conf)
	if err != nil {
		t.Fatal(err)
	}
	g.put(t, n, conf, append(text, "max_slot_wal_keep_size = '1MB'\n"...))
	if err := g.d.Reload(t.Context(), g.m[n]); err != nil {
		t.Fatal(err)
	}
	err = g.d.withAdmin(t.Context(), g.m[n], func(conn *pgx.Conn) error {
		for range 4 {
			for _, sql := range []string{"SELECT pg_logical_emit_message(true, 'kurabe', 'x'::text)", "SELECT pg_switch_wal()"} {
				if _, err := conn.Exec(t.Context(), sql); err != nil {
					return err
				}
			}
		}
		_, err := conn.Exec(t.Context(), "CHECKPOINT")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	g.settings(t, n)
}

// A follower whose log was given up while it was away is told as lost, follows no more, and
// a clone makes a follower of it again. A slot that is gone is missed.
func TestGroupLost(t *testing.T) {
	enginetest.OnceIsEnough(t)
	g := newGroup(t)
	second := g.m[1].Instance
	g.bed.MustQuery(t, "INSERT INTO ledger VALUES (1)")
	g.has(t, 1, 1)
	g.end(t, 1, g.d.KillSignal())
	if v := g.look(t, 0); v.Followers[second].Lost || !slices.Equal(v.Slots, []kurabe.InstanceID{second}) {
		t.Fatalf("before anything is lost: %+v", v)
	}
	g.outrun(t, 0)
	g.bed.MustQuery(t, "INSERT INTO ledger VALUES (2)")
	if v := g.look(t, 0); !v.Followers[second].Lost || !slices.Equal(v.Slots, []kurabe.InstanceID{second}) {
		t.Fatalf("its log is gone: %+v", v)
	}
	g.start(t, 1)
	if v := g.look(t, 1); v.Following {
		t.Errorf("it follows without the log that it lacks: %+v", v)
	}
	g.end(t, 1, g.d.KillSignal())
	if err := g.d.ProbeSource(t.Context(), g.m[1], g.caFile(1)); err != nil {
		t.Errorf("its source writes: %v", err)
	}
	thaw := g.freeze(t, 0)
	if err := g.d.ProbeSource(t.Context(), g.m[1], g.caFile(1)); err == nil {
		t.Error("its source hangs, and passes for one to copy")
	}
	thaw()
	if err := os.RemoveAll(g.m[1].Home.DataDir()); err != nil {
		t.Fatal(err)
	}
	g.clone(t, 1, 0)
	g.start(t, 1)
	g.follows(t, 1)
	g.has(t, 1, 1, 2)
	if v := g.look(t, 0); v.Followers[second].Lost {
		t.Errorf("it is made anew: %+v", v)
	}

	g.end(t, 1, g.d.StopSignal())
	err := g.d.withAdmin(t.Context(), g.m[0], func(conn *pgx.Conn) error { return dropMember(t.Context(), conn, memberName(second.Owner(), second)) })
	if v := g.look(t, 0); err != nil || v.Slots == nil || len(v.Slots) > 0 {
		t.Errorf("its slot is gone: %+v, %v", v, err)
	}
}

// One that was the writer is not rewound when its source has given up log that it would need
// then: it would wait for that for ever.
func TestGroupRejoinLost(t *testing.T) {
	enginetest.OnceIsEnough(t)
	g := newGroup(t)
	g.diverge(t)
	if err := g.d.Promote(t.Context(), g.m[1]); err != nil {
		t.Fatal(err)
	}
	g.settings(t, 1)
	g.outrun(t, 1)
	g.follow(t, 0, 1)
	if err := g.d.Rejoin(t.Context(), g.m[0], g.caFile(0)); !errors.Is(err, engine.ErrRebuild) {
		t.Fatalf("got %v", err)
	}
	if err := os.RemoveAll(g.m[0].Home.DataDir()); err != nil {
		t.Fatal(err)
	}
	g.clone(t, 0, 1)
	g.start(t, 0)
	g.follows(t, 0)
	g.has(t, 0, 1)
}
