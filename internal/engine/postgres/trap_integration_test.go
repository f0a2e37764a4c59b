//go:build integration

package postgres

import (
	"slices"
	"testing"

	"kurabe/internal/engine"
	"kurabe/internal/engine/enginetest"
)

// trapped are the databases of a tenant, as SQL writes them: one bears the characters that
// a connection string takes for its own.
var trapped = []string{"shop", "postgres", `"x' y=""z"" dbname=rdsadmin"`, "closed", "capped"}

// The service acts on an instance whose every database is full of traps, and none is sprung:
// nor is a trap taken for damage.
func TestTraps(t *testing.T) {
	enginetest.OnceIsEnough(t)
	s := setup(t, enginetest.Reachable(t))
	s.Settings["shared_preload_libraries"] = "pg_stat_statements,pgaudit"
	s.Settings["max_prepared_transactions"] = "5"
	b := enginetest.Serving(t, s)
	trap := plant(t, b)
	driver, i := New(Config{}), instanceOf(b)
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"ensuring the master user", func() error { return driver.EnsureMaster(t.Context(), i) }},
		{"setting the password", func() error { return driver.SetPassword(t.Context(), i) }},
		{"probing", func() error { return driver.Probe(t.Context(), i, b.Login().CAFile) }},
		{"changing a parameter", func() error {
			b.Set(map[string]string{"work_mem": "12345"})
			return b.TrySatisfy(t.Context())
		}},
		{"a restart", func() error { b.Want.Boot++; return b.TrySatisfy(t.Context()) }},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		trap.MustRest(t, step.name)
	}
	id, _ := b.Take(t)
	trap.MustRest(t, "taking a snapshot")
	if err := b.Snapshots().Seal(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	v, err := b.Snapshots().Verify(t.Context(), engine.VerifyRequest{Snapshot: id})
	trap.MustRest(t, "verifying")
	if err != nil || !v.OK {
		t.Errorf("verifying sound data with traps in it: %v, %q", err, v.Problems)
	}
	b.Restore(t, id)
	trap.MustRest(t, "restoring")
}

// plant fills all databases, and leaves a prepared transaction that has a table locked.
func plant(t *testing.T, b *enginetest.Bed) enginetest.Trap {
	t.Helper()
	trap := enginetest.NewTrap(t)
	for _, name := range trapped[2:] {
		b.MustQuery(t, "CREATE DATABASE "+name)
	}
	for _, name := range trapped {
		conn := masterIn(t, b, name)
		for _, sql := range trap.PostgresSQL() {
			if _, err := conn.Exec(t.Context(), sql); err != nil {
				t.Fatalf("%s in %s: %v", sql, name, err)
			}
		}
		for _, sql := range []string{"CREATE EXTENSION pgaudit", "BEGIN", "CREATE TABLE evil.half (n integer)", "LOCK TABLE evil.t", "PREPARE TRANSACTION " + quoteLiteral("held in "+name)} {
			if _, err := conn.Exec(t.Context(), sql); err != nil {
				t.Fatalf("%s in %s: %v", sql, name, err)
			}
		}
		closeConn(t.Context(), conn)
	}
	// What lies in template1 is in each database that anybody makes later.
	if conn := masterIn(t, b, "template1"); conn != nil {
		for _, sql := range trap.PostgresSQL() {
			_, _ = conn.Exec(t.Context(), sql) // a server that lets nobody create there is none the worse
		}
		closeConn(t.Context(), conn)
	}
	conn := masterIn(t, b, "shop") // one session: these settings are for those that come later
	for _, sql := range slices.Concat(enginetest.PostgresSettings("shop"), enginetest.PostgresSettings("postgres"), enginetest.PostgresSettings("closed"),
		enginetest.PostgresSettings("capped"), []string{"ALTER DATABASE closed ALLOW_CONNECTIONS false", "ALTER DATABASE capped CONNECTION LIMIT 0"}) {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	closeConn(t.Context(), conn)
	trap.MustRest(t, "planting it")
	return trap
}
