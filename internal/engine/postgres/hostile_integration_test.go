//go:build integration

package postgres

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"kurabe/internal/engine/enginetest"
)

// trap makes what betrays whose code ran.
var trap = []string{
	"CREATE SCHEMA evil",
	`CREATE FUNCTION evil.run(text) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''ran as %'', current_user; END'`,
	`CREATE FUNCTION evil.fire() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''ran as %'', current_user; END'`,
	"CREATE DOMAIN evil.field AS text CHECK (evil.run(VALUE))",
}

// falseCube is earthdistance's undoing where its script runs as it is: a cast of
// a literal runs the type's input while the script is still being read, and that
// of a composite type runs the check of a domain in it.
var falseCube = []string{
	"CREATE TYPE evil.cube AS (f evil.field)",
	"CREATE FUNCTION evil.cube_is_point(evil.cube) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
	"CREATE FUNCTION evil.cube_dim(evil.cube) RETURNS integer LANGUAGE sql AS 'SELECT 1'",
	"CREATE FUNCTION evil.cube_distance(evil.cube, evil.cube) RETURNS float8 LANGUAGE sql AS 'SELECT 1.0::float8'",
}

// betters are names that scripts use, in forms that fit better than theirs.
var betters = []string{
	"CREATE FUNCTION evil.lower(varchar) RETURNS text LANGUAGE sql AS 'SELECT evil.run($1)::text'",
	"CREATE FUNCTION evil.replace(varchar, varchar, varchar) RETURNS text LANGUAGE sql AS 'SELECT evil.run($1)::text'",
	"CREATE FUNCTION evil.array_upper(integer[], bigint) RETURNS integer LANGUAGE sql AS 'SELECT evil.run('''')::integer'",
	"CREATE FUNCTION evil.geometry(bytea, text) RETURNS text LANGUAGE sql AS 'SELECT evil.run($2)::text'",
	"CREATE FUNCTION evil.both(varchar, varchar) RETURNS boolean LANGUAGE sql AS 'SELECT evil.run($1)'",
	"CREATE OPERATOR evil.|| (LEFTARG = varchar, RIGHTARG = varchar, FUNCTION = evil.both)",
	"CREATE OPERATOR evil.= (LEFTARG = varchar, RIGHTARG = varchar, FUNCTION = evil.both)",
	"CREATE OPERATOR evil.<> (LEFTARG = varchar, RIGHTARG = varchar, FUNCTION = evil.both)",
	"CREATE FUNCTION evil.cast(evil.cube) RETURNS text LANGUAGE sql AS 'SELECT evil.run('''')::text'",
	"CREATE CAST (evil.cube AS text) WITH FUNCTION evil.cast(evil.cube) AS IMPLICIT",
	"CREATE TABLE evil.spatial_ref_sys (srid integer PRIMARY KEY, auth_name text, auth_srid integer, srtext text, proj4text text)",
	"CREATE TRIGGER fire BEFORE INSERT ON evil.spatial_ref_sys FOR EACH ROW EXECUTE FUNCTION evil.fire()",
	"CREATE TYPE evil.geometry AS (f evil.field)",
	"CREATE TYPE evil.stdaddr AS (f evil.field)",
}

func hostile(t *testing.T, b *enginetest.Bed, lists ...[]string) {
	t.Helper()
	for _, sql := range slices.Concat(lists...) {
		b.MustQuery(t, sql)
	}
}

// The script of an extension runs as superuser in a schema of the caller's.
func TestHostileSchema(t *testing.T) {
	enginetest.OnceIsEnough(t)
	b := running(t)
	b.MustQuery(t, "CREATE EXTENSION cube SCHEMA public")
	hostile(t, b, trap, falseCube, betters)
	for _, name := range b.Version.Extensions {
		_, err := query(t.Context(), b.Login(), "CREATE EXTENSION "+quoteName(name)+" SCHEMA evil CASCADE")
		if err != nil && strings.Contains(err.Error(), "ran as") {
			t.Errorf("%s: %v", name, err)
		}
		if slices.Contains([]string{"postgis", "address_standardizer"}, name) && !strings.HasPrefix(refusal(err), "42710 schema \"evil\" already has") {
			t.Errorf("%s over a table and a type of its names: %v", name, err)
		}
	}
	// Beside all that the true one works.
	b.MustQuery(t, "DROP EXTENSION IF EXISTS earthdistance")
	b.MustQuery(t, "CREATE EXTENSION earthdistance SCHEMA evil")
	b.MustQuery(t, "SELECT '(6378168, 0, 0)'::evil.earth")
}

// To look whether the schema is clean is not enough: what another session adds
// while the script runs must not be found either.
func TestHostileRace(t *testing.T) {
	enginetest.OnceIsEnough(t)
	b := running(t)
	b.MustQuery(t, "CREATE EXTENSION cube SCHEMA public")
	hostile(t, b, trap)
	super := superuserIn(t, b)
	exec := func(sql string) {
		t.Helper()
		if _, err := super.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	// The script's first constraint waits for this, and the rooms' last deed.
	exec("BEGIN")
	exec("LOCK TABLE pg_constraint IN SHARE MODE")
	done := make(chan error, 1)
	go func() {
		_, err := query(t.Context(), b.Login(), "CREATE EXTENSION earthdistance SCHEMA evil")
		done <- err
	}()
	deadline := time.Now().Add(time.Minute)
	for waiting := false; !waiting; {
		if err := super.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_locks WHERE relation = 'pg_constraint'::regclass AND NOT granted)").Scan(&waiting); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(deadline) {
			t.Fatal("the script never came to its first constraint")
		}
	}
	hostile(t, b, falseCube)
	exec("COMMIT")
	if err := <-done; err != nil {
		t.Errorf("with another session at work: %v", err)
	}
}

// A setting of the session becomes part of a statement in PostGIS's own scripts.
func TestHostilePath(t *testing.T) {
	enginetest.OnceIsEnough(t)
	b := running(t)
	if !slices.Contains(b.Version.Extensions, "postgis_topology") {
		t.Skip("PostGIS is not installed")
	}
	b.MustQuery(t, "CREATE EXTENSION postgis")
	config, err := clientConfig(b.Login())
	if err != nil {
		t.Fatal(err)
	}
	config.RuntimeParams = map[string]string{"search_path": "public,topology;ALTER/**/ROLE/**/master/**/SUPERUSER;--"}
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer closeConn(context.Background(), conn)
	if _, err := first(t.Context(), conn, "CREATE EXTENSION postgis_topology"); err != nil {
		t.Error(err)
	}
	if got := b.MustQuery(t, "SELECT rolsuper FROM pg_roles WHERE rolname = 'master'"); got != "false" {
		t.Errorf("the master user is superuser: %s", got)
	}
	// An older version would be had by way of the update scripts.
	for _, sql := range []string{"ALTER EXTENSION postgis UPDATE TO 'ANY'", "CREATE EXTENSION postgis_topology SCHEMA topology VERSION 'unpackaged'"} {
		if _, err := query(t.Context(), b.Login(), sql); err == nil {
			t.Errorf("%s: allowed", sql)
		}
	}
}

// superuserIn is a session of the service in the database of the clients, which
// the service itself never has.
func superuserIn(t *testing.T, b *enginetest.Bed) *pgx.Conn {
	t.Helper()
	i := instanceOf(b)
	config, err := sessionConfig("/", i.Port, adminRole)
	if err != nil {
		t.Fatal(err)
	}
	config.Database = b.Login().Database
	config.DialFunc = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialSocket(ctx, i.Home.RunDir(), i.Port)
	}
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeConn(context.Background(), conn) })
	return conn
}
