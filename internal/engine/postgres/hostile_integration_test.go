//go:build integration

package postgres

import (
	"strings"
	"testing"
)

// The script of an extension runs as superuser in a schema of the caller's. A
// cast of a literal runs the type's input while the script is still being read:
// with a composite type of that name, whose field is a domain whose check is the
// caller's function, that was earthdistance's way to a superuser.
func TestHostileSchema(t *testing.T) {
	b := running(t)
	for _, sql := range []string{
		"CREATE EXTENSION cube SCHEMA public",
		"CREATE SCHEMA evil",
		`CREATE FUNCTION evil.run(text) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''ran as %'', current_user; END'`,
		"CREATE DOMAIN evil.field AS text CHECK (evil.run(VALUE))",
		"CREATE TYPE evil.cube AS (f evil.field)",
		"CREATE FUNCTION evil.cube_is_point(evil.cube) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
		"CREATE FUNCTION evil.cube_dim(evil.cube) RETURNS integer LANGUAGE sql AS 'SELECT 1'",
		"CREATE FUNCTION evil.cube_distance(evil.cube, evil.cube) RETURNS float8 LANGUAGE sql AS 'SELECT 1.0::float8'",
	} {
		b.MustQuery(t, sql)
	}
	for _, name := range b.Version.Extensions {
		_, err := query(t.Context(), b.Login(), "CREATE EXTENSION "+quoteName(name)+" SCHEMA evil CASCADE")
		if err != nil && strings.Contains(err.Error(), "ran as") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
