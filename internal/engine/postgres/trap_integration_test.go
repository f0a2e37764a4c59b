//go:build integration

package postgres

import (
	"slices"
	"strings"
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
	// What was left out is told: five indexes of each database, also of one that nobody could
	// enter, and one more of the first. What calls the engine's own alone is compared.
	notes := strings.Join(v.Notes, "\n")
	for index, told := range map[string]bool{"shop.evil.by_value": true, "shop.evil.by_sum": false, "shop.evil.by_class": true, "18 more indexes": true} {
		if strings.Contains(notes, index) != told {
			t.Errorf("index %s is told of as left out: %v, in %s", index, !told, notes)
		}
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
	plantFailing(t, b)
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

// plantFailing has an index whose expression fails since it was made, and one whose operator
// class a superuser has made of a tenant's function. Neither is damage.
func plantFailing(t *testing.T, b *enginetest.Bed) {
	t.Helper()
	super := superuserIn(t, b)
	for _, sql := range []string{
		"SET search_path = pg_catalog", "SET SESSION AUTHORIZATION master",
		"CREATE FUNCTION evil.later(integer) RETURNS integer IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN $1; END'",
		"CREATE FUNCTION evil.order(integer, integer) RETURNS integer IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN pg_catalog.btint4cmp($1, $2); END'",
		"CREATE TABLE evil.changed (n integer)", "INSERT INTO evil.changed SELECT generate_series(1, 50)", "CREATE INDEX by_later ON evil.changed (evil.later(n))",
		"CREATE INDEX by_sum ON evil.changed ((n + 1)) WHERE n > 7",
		"RESET SESSION AUTHORIZATION",
		"CREATE OPERATOR CLASS evil.class FOR TYPE integer USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 evil.order(integer, integer)",
		"CREATE INDEX by_class ON evil.changed (n evil.class)",
		"SET SESSION AUTHORIZATION master",
		"CREATE OR REPLACE FUNCTION evil.later(integer) RETURNS integer IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RAISE ''it has been called''; END'",
		"CREATE OR REPLACE FUNCTION evil.order(integer, integer) RETURNS integer IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RAISE ''it has been called''; END'",
	} {
		if _, err := super.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}
