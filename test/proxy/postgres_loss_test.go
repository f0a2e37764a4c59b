//go:build integration

package proxy

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"kurabe/test/relay"
)

// ownServer is a PostgreSQL that a test may stop.
func ownServer(t *testing.T) *relay.Server {
	t.Helper()
	server(t) // skips
	s, err := relay.StartPostgres(deadline(t), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop(context.WithoutCancel(t.Context()), "immediate") })
	return s
}

// TestPostgresLoss: the server ends below clients in every state, by its administrator's word
// and without a word.
func TestPostgresLoss(t *testing.T) {
	for _, mode := range []string{"fast", "immediate"} {
		t.Run(mode, func(t *testing.T) { loss(t, mode) })
	}
}

func loss(t *testing.T, mode string) {
	s := ownServer(t)
	admin := connect(t, s.URL("postgres"), simple)
	exec(t, admin, `CREATE TABLE t (n int);
		CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(600); RETURN NULL; END';
		CREATE TABLE late (n int);
		CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON late DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION slow()`)
	x := start(t, s, 10, nil)
	idle, within, running, committing, alone, pinned := x.connect(t, simple), x.connect(t, simple), x.connect(t, nil), x.connect(t, simple), x.connect(t, nil), x.connect(t, simple)
	exec(t, idle, "SET work_mem = '9MB'")
	exec(t, within, "BEGIN")
	exec(t, within, "INSERT INTO t VALUES (1)")
	exec(t, running, "BEGIN")
	exec(t, committing, "BEGIN")
	exec(t, committing, "INSERT INTO late VALUES (1)")
	exec(t, pinned, "CREATE TEMP TABLE p (n int)")
	results := map[string]chan error{}
	do := func(name string, c *pgx.Conn, sql string) {
		results[name] = make(chan error, 1)
		go func() { _, err := c.Exec(deadline(t), sql); results[name] <- err }()
	}
	do("running", running, "SELECT pg_sleep(601)")
	do("committing", committing, "COMMIT")
	do("alone", alone, "SELECT pg_sleep(602)")
	for one[int](t, admin, "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND (query LIKE '%pg_sleep(60_)' OR query = 'COMMIT')") != 3 {
		time.Sleep(20 * time.Millisecond)
	}
	_ = admin.Close(t.Context())
	if err := s.Stop(deadline(t), mode); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"running": "08006", "committing": "08007", "alone": "08007"} {
		if err := <-results[name]; !is(err, want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	// What is asked now waits for the server.
	do("idle", idle, "SELECT 1")
	if err := s.Start(deadline(t)); err != nil {
		t.Fatal(err)
	}
	if err := <-results["idle"]; err != nil {
		t.Errorf("idle: %v", err)
	}
	if got := show(t, idle, "work_mem"); got != "9MB" {
		t.Errorf("the idle client's setting is %q", got)
	}
	goesOn(t, within, running)
	for _, c := range []*pgx.Conn{running, committing, alone, within} {
		if got := one[int](t, c, "SELECT sum(n) FROM t"); got != 4 {
			t.Errorf("the table has %d", got)
		}
	}
	if _, err := pinned.Exec(deadline(t), "SELECT 1"); err == nil {
		t.Error("a client whose session is gone goes on")
	}
}

// goesOn: the rest of a transaction that is lost does not run as statements of their own.
func goesOn(t *testing.T, within, running *pgx.Conn) {
	if _, err := within.Exec(deadline(t), "INSERT INTO t VALUES (2)"); !is(err, "08006") {
		t.Errorf("in a transaction: %v", err)
	}
	for range 2 {
		if _, err := within.Exec(deadline(t), "INSERT INTO t VALUES (3)"); !is(err, "25P02") {
			t.Errorf("in a transaction, again: %v", err)
		}
	}
	exec(t, within, "ROLLBACK")
	exec(t, within, "INSERT INTO t VALUES (4)")
	if status := running.PgConn().TxStatus(); status != 'E' {
		t.Errorf("status %q", status)
	}
	if _, err := running.Exec(deadline(t), "SELECT $1::int", 1); !is(err, "25P02") {
		t.Errorf("running, again: %v", err)
	}
	if tag, err := running.Exec(deadline(t), "COMMIT"); err != nil || tag.String() != "ROLLBACK" {
		t.Errorf("commit of a lost transaction: %s, %v", tag, err)
	}
}
