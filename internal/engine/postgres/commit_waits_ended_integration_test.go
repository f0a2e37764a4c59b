//go:build integration

package postgres

import (
	"context"
	"maps"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/enginetest"
)

// Commits that end their wait for the follower early are counted, by what ended them, in the words
// of this very server; those of the service's own witness are not, nor those that are answered.
func TestGroupEndedWaits(t *testing.T) {
	enginetest.OnceIsEnough(t)
	g := newGroup(t)
	at, n, err := g.d.ReadWaits(t.Context(), g.m[0], engine.LogPlace{})
	if err != nil || n != (kurabe.WaitCount{}) {
		t.Fatalf("%+v, %v", n, err)
	}
	g.write(t, 0, g.m[1].Instance)
	if err := g.d.Waits(t.Context(), g.m[0]); err != nil {
		t.Fatal(err)
	}
	thaw := g.freeze(t, 1)
	if err := g.d.Waits(t.Context(), g.m[0]); err != nil { // a witness that is ended in its wait
		t.Fatal(err)
	}
	row := 0
	insert := func(settings map[string]string) <-chan error {
		t.Helper()
		row++
		ended := make(chan error, 1)
		conn := g.session(t, 0, settings)
		sql := "INSERT INTO ledger VALUES (" + strconv.Itoa(row) + ")"
		go func() {
			_, err := conn.Exec(context.Background(), sql)
			ended <- err
		}()
		return ended
	}
	answered := func(ended <-chan error, want bool) {
		t.Helper()
		if err := <-ended; (err == nil) != want {
			t.Errorf("row %d is answered with %v", row, err)
		}
	}
	c := insert(nil)
	g.endWaits(t, "pg_cancel_backend")
	answered(c, true)
	c = insert(nil)
	g.endWaits(t, "pg_terminate_backend")
	answered(c, false)
	// A statement's time is over when its commit begins.
	c = insert(map[string]string{"statement_timeout": "100"})
	until(t, "commit that waits for longer than its statement may take", func() bool {
		var long bool
		err := g.d.withAdmin(t.Context(), g.m[0], func(conn *pgx.Conn) error {
			return conn.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND clock_timestamp() - query_start > '500ms')").Scan(&long)
		})
		return err == nil && long
	})
	thaw()
	answered(c, true)
	g.has(t, 1, 1, 2, 3)
	// The writer's last words are read when it has ended.
	g.end(t, 0, g.d.StopSignal())
	_, n, err = g.d.ReadWaits(t.Context(), g.m[0], at)
	if want := (kurabe.WaitCount{Cancelled: 1, Ended: 1}); err != nil || n != want {
		t.Errorf("%+v, %v, want %+v", n, err, want)
	}
}

// endWaits has a function end what a commit that waits is about.
func (g *group) endWaits(t *testing.T, function string) {
	t.Helper()
	g.waiting(t, 1)
	err := g.d.withAdmin(t.Context(), g.m[0], func(conn *pgx.Conn) error {
		_, err := conn.Exec(t.Context(), "SELECT "+function+"(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// session is one of the master user's at a server itself, with settings of its own.
func (g *group) session(t *testing.T, n int, settings map[string]string) *pgx.Conn {
	t.Helper()
	login := g.bed.Login()
	login.Address = g.m[n].Listens()
	config, err := clientConfig(login)
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(config.RuntimeParams, settings)
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeConn(context.Background(), conn) })
	return conn
}
