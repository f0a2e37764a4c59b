//go:build integration

package postgres

import (
	"context"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"kurabe"
	"kurabe/internal/engine/enginetest"
)

// A commit that can wait for either of two followers ends with the answer of one, whichever
// that is, and with none of one that is not to be waited for any more.
func TestGroupWaitsForEither(t *testing.T) {
	enginetest.OnceIsEnough(t)
	g := newGroup(t)
	g.join(t)
	second, third := g.m[1].Instance, g.m[2].Instance
	wait := func(ids ...kurabe.InstanceID) {
		t.Helper()
		g.write(t, 0, ids...)
		if err := g.d.Waits(t.Context(), g.m[0]); err != nil {
			t.Fatal(err)
		}
		if v := g.look(t, 0); !slices.Equal(v.WaitsFor, ids) {
			t.Errorf("it waits for %v, want %v", v.WaitsFor, ids)
		}
	}
	wait(second, third)
	for n, hangs := range []int{1, 2} {
		thaw := g.freeze(t, hangs)
		if err := <-g.commit(t, n+1); err != nil {
			t.Errorf("with one of two: %v", err)
		}
		thaw()
		g.has(t, hangs, slices.Collect(func(yield func(int) bool) { _ = yield(1) && (n == 0 || yield(2)) })...)
	}
	g.follows(t, 1)
	g.follows(t, 2)

	wait(second)
	g.freeze(t, 1)
	committed := g.commit(t, 3)
	g.waiting(t, 1)
	g.has(t, 2, 1, 2, 3) // whose answer does not count
	g.waiting(t, 1)
	wait(second, third)
	if err := <-committed; err != nil {
		t.Errorf("the commit that may go on by the other's answer: %v", err)
	}
}

// A follower that holds gets nothing any more, knows how far it is, also when its server was
// killed meanwhile, and goes on afterwards, or takes over.
func TestGroupHolds(t *testing.T) {
	enginetest.OnceIsEnough(t)
	g := newGroup(t)
	g.bed.MustQuery(t, "INSERT INTO ledger VALUES (1)")
	g.has(t, 1, 1)
	first := g.hold(t, 1)
	if again := g.hold(t, 1); again != first {
		t.Errorf("it is at %d, and then at %d", first, again)
	}
	g.bed.MustQuery(t, "INSERT INTO ledger VALUES (2)")
	if v := g.look(t, 1); v.Following || v.Position != first {
		t.Errorf("it has %+v, and was at %d", v, first)
	}
	g.end(t, 1, int(syscall.SIGKILL))
	g.start(t, 1)
	if again := g.hold(t, 1); again != first {
		t.Errorf("started again it is at %d, and was at %d", again, first)
	}
	g.has(t, 1, 1)
	g.follow(t, 1, 0)
	g.follows(t, 1)
	g.has(t, 1, 1, 2)
	if second := g.hold(t, 1); second <= first {
		t.Errorf("it is at %d with more than it had at %d", second, first)
	}
	g.end(t, 0, int(syscall.SIGKILL))
	g.write(t, 1)
	if err := g.d.Promote(t.Context(), g.m[1]); err != nil {
		t.Fatal(err)
	}
	g.write(t, 1)
	if _, err := g.client(t.Context(), 1, "INSERT INTO ledger VALUES (3)"); err != nil {
		t.Error(err)
	}
}

// A server that takes over does not wait for clients who read: their queries may hold the log
// up, which everybody else would wait for.
func TestGroupTakesOverFromReaders(t *testing.T) {
	enginetest.OnceIsEnough(t)
	g := newGroup(t)
	g.bed.MustQuery(t, "INSERT INTO ledger SELECT generate_series(1, 1000)")
	role := *g.m[1].Role
	role.ServesReads = true
	g.m[1].Role = &role
	g.settings(t, 1)
	g.follows(t, 1)
	reads := func() <-chan error {
		t.Helper()
		g.has(t, 1, g.rows(t, 0)...)
		ended := make(chan error, 1)
		go func() {
			_, err := g.client(t.Context(), 1, "SELECT pg_sleep(120)::text FROM ledger LIMIT 1")
			ended <- err
		}()
		until(t, "client that reads", func() bool {
			return g.counts(t, 1, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'") == 1
		})
		g.bed.MustQuery(t, "DELETE FROM ledger WHERE n > 1")
		g.bed.MustQuery(t, "VACUUM ledger")
		g.bed.MustQuery(t, "INSERT INTO ledger VALUES (2)")
		until(t, "log that is held up", func() bool {
			return g.counts(t, 1, "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'startup' AND wait_event LIKE 'RecoveryConflict%'") == 1
		})
		return ended
	}
	soon, cancel := context.WithTimeout(t.Context(), 15*time.Second) // half of what a query may
	defer cancel()
	ended := reads()
	g.m[1].Role = &kurabe.Role{Epoch: 1, Duty: kurabe.DutyDetached, ServesReads: true}
	g.settings(t, 1)
	if _, err := g.d.Hold(soon, g.m[1]); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("the client goes on")
	}
	g.m[1].Role = &role
	g.settings(t, 1)
	g.follows(t, 1)
	g.bed.MustQuery(t, "INSERT INTO ledger SELECT generate_series(3, 1000)")
	soon, cancel = context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	ended = reads()
	g.end(t, 0, int(syscall.SIGKILL))
	if err := g.d.Promote(soon, g.m[1]); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("the client goes on")
	}
}

// counts asks a server itself for a number.
func (g *group) counts(t *testing.T, n int, question string) (count int) {
	t.Helper()
	err := g.d.withAdmin(t.Context(), g.m[n], func(conn *pgx.Conn) error { return conn.QueryRow(t.Context(), question).Scan(&count) })
	if err != nil {
		t.Fatal(err)
	}
	return count
}
