//go:build integration

package postgres

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

// A former writer that parted from its source many segments after their last common
// checkpoint is rewound all the same, also when the checkpoint that follows a promotion is
// under way already: its slot was made before that.
func TestGroupRejoinFar(t *testing.T) {
	g := newGroup(t)
	err := g.d.withAdmin(t.Context(), g.m[0], func(conn *pgx.Conn) error {
		for range 4 {
			for _, sql := range []string{"SELECT pg_logical_emit_message(true, 'kurabe', 'x'::text)", "SELECT pg_switch_wal()"} {
				if _, err := conn.Exec(t.Context(), sql); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	g.diverge(t)
	if err := g.d.Promote(t.Context(), g.m[1]); err != nil {
		t.Fatal(err)
	}
	g.write(t, 1)
	// The checkpoint that follows a promotion moves on where a new slot begins, and takes its
	// time until it removes anything.
	until(t, "checkpoint under way", func() bool {
		var far bool
		err := g.d.withAdmin(t.Context(), g.m[1], func(conn *pgx.Conn) error {
			return conn.QueryRow(t.Context(), `SELECT pg_walfile_name(lsn) = pg_walfile_name(pg_current_wal_lsn())
				FROM pg_create_physical_replication_slot('probe', true, true)`).Scan(&far)
		})
		if err != nil {
			t.Fatal(err)
		}
		return far
	})
	if err := g.d.Followers(t.Context(), g.m[1]); err != nil {
		t.Fatal(err)
	}
	g.follow(t, 0, 1)
	if err := g.d.Rejoin(t.Context(), g.m[0], g.caFile(0)); err != nil {
		t.Fatal(err)
	}
	g.start(t, 0)
	g.follows(t, 0)
	g.has(t, 0, 1)
}
