//go:build integration

package integration

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"kurabe/internal/harness"
)

// stateful is what a client leaves in its session: what sets it, what reads it there, and
// what that answers; other is what reads in a session that has nothing of it, "" for an error.
type stateful struct{ set, read, answers, other string }

var sessionStates = map[string][]stateful{
	"postgres": {
		{"SET search_path TO elsewhere, public", "SHOW search_path", "elsewhere, public", `"$user", public`},
		{"CREATE TEMP TABLE mine AS SELECT 7 AS n", "SELECT n::text FROM mine", "7", ""},
		{"PREPARE seven AS SELECT '7'", "EXECUTE seven", "7", ""},
		{"SELECT pg_advisory_lock(7)", "SELECT count(*)::text FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()", "1", "0"},
	},
	"mariadb": {
		{"SET @mine = 7", "SELECT COALESCE(@mine, 'nothing')", "7", "nothing"},
		{"CREATE TEMPORARY TABLE mine AS SELECT 7 AS n", "SELECT n FROM mine", "7", ""},
		{"PREPARE seven FROM 'SELECT 7'", "EXECUTE seven", "7", ""},
		{"DO GET_LOCK('seven', 1)", "SELECT IS_USED_LOCK('seven') = CONNECTION_ID()", "1", "0"},
	},
}

// TestSessionsOverAFailover: what a client has in its session is there for as long as the
// session is, and for nobody else. A failover ends it with an error, never with an answer
// from elsewhere; what was not committed is gone, no session stays with the old writer, and
// what is cancelled through the endpoint is cancelled.
func TestSessionsOverAFailover(t *testing.T) {
	onceIsEnough(t)
	eachPair(t, "sessions", func(t *testing.T, b *pairBed) {
		must(t, b.Open(t).Exec(t.Context(), "CREATE TABLE work (n int)"))
		for _, f := range failovers {
			inTurn(t, f.name, func(t *testing.T) {
				b.WaitWhole(t)
				held := b.Open(t)
				b.leaves(t, held)
				must(t, held.Exec(t.Context(), "BEGIN"))
				must(t, held.Exec(t.Context(), "INSERT INTO work VALUES (1)"))
				b.lose(t, func(t *testing.T, b *pairBed, writer harness.Member) { f.strike(t, b, writer) })
				if rows, err := held.Rows(t.Context(), "SELECT 1"); err == nil {
					t.Errorf("a session of the old writer is answered: %q", rows)
				}
				if n := b.Query(t, "SELECT CAST(count(*) AS char(9)) FROM work"); strings.TrimSpace(n) != "0" {
					t.Errorf("%s rows that were never committed", n)
				}
				b.cancels(t)
			})
		}
	})
}

// leaves has a session come to have all states, and demands that another one has none.
func (b *pairBed) leaves(t *testing.T, s harness.Session) {
	t.Helper()
	other := b.Open(t)
	for _, state := range sessionStates[b.Engine] {
		must(t, s.Exec(t.Context(), state.set))
		if rows, err := s.Rows(t.Context(), state.read); err != nil || len(rows) != 1 || rows[0] != state.answers {
			t.Errorf("%s: %q, %v", state.read, rows, err)
		}
		rows, err := other.Rows(t.Context(), state.read)
		if said := strings.Join(rows, "\n"); said != state.other || (err != nil) != (state.other == "") {
			t.Errorf("%s in another session: %q, %v", state.read, rows, err)
		}
	}
}

// cancels has one session wait, and another one cancel that, each as the engine's clients do.
func (b *pairBed) cancels(t *testing.T) {
	t.Helper()
	s := b.Open(t)
	// MariaDB ends a SLEEP or a BENCHMARK that is killed with an answer.
	waits := map[string]string{"postgres": "SELECT pg_sleep(600)", "mariadb": "SELECT count(*) FROM seq_1_to_1000000 a JOIN seq_1_to_1000000 b ON a.seq + b.seq < 0"}[b.Engine]
	id := ""
	if b.Engine == "mariadb" {
		id = answer(t, s, "SELECT CONNECTION_ID()")
	}
	done := make(chan error, 1)
	go func() { done <- s.Exec(t.Context(), waits) }()
	b.runsFor(t, waits)
	began := time.Now()
	if pg, ok := s.(interface{ PgConn() *pgconn.PgConn }); ok {
		must(t, pg.PgConn().CancelRequest(t.Context()))
	} else {
		must(t, b.Open(t).Exec(t.Context(), "KILL QUERY "+id))
	}
	select {
	case err := <-done:
		var pg *pgconn.PgError
		if err == nil || errors.As(err, &pg) && pg.Code != "57014" {
			t.Errorf("a statement that was cancelled ended with %v", err)
		}
		t.Logf("cancelled after %v: %v", time.Since(began).Round(time.Millisecond), err)
	case <-time.After(gapBound):
		t.Error("a statement that was cancelled goes on")
	}
	if rows, err := s.Rows(context.Background(), "SELECT '1'"); err != nil || rows[0] != "1" {
		t.Errorf("the session is of no use afterwards: %q, %v", rows, err)
	}
}

// runsFor waits until the server has begun a statement.
func (b *pairBed) runsFor(t *testing.T, statement string) {
	t.Helper()
	begun := map[string]string{
		"postgres": "SELECT count(*)::text FROM pg_stat_activity WHERE state = 'active' AND query = '" + statement + "'",
		"mariadb":  `SELECT count(*) FROM information_schema.processlist WHERE info LIKE 'SELECT count(*) FROM seq_1_to_1000000 a%'`,
	}[b.Engine]
	harness.Wait(t, gapBound, "the statement runs", func() string {
		if n := b.Query(t, begun); n != "1" {
			return n
		}
		return ""
	})
}
