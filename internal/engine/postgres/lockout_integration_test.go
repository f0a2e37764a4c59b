//go:build integration

package postgres

import "testing"

// A new master password is the way in again, whatever the master user has done to itself.
func TestNewPasswordLetsIn(t *testing.T) {
	for _, c := range []struct{ name, sql string }{
		{"no connection", "ALTER ROLE master CONNECTION LIMIT 0"},
		{"no login", "ALTER ROLE master NOLOGIN"},
		{"expired", "ALTER ROLE master VALID UNTIL '2001-01-01'"},
		{"no password", "ALTER ROLE master PASSWORD NULL"},
		{"no time", "ALTER ROLE master SET statement_timeout = 1"},
		{"no time here", "ALTER ROLE master IN DATABASE shop SET idle_session_timeout = '1ms'"},
		{"not of its group", "REVOKE rds_superuser FROM master"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := running(t)
			b.MustQuery(t, "ALTER ROLE master SET lock_timeout = '30s'")
			b.MustQuery(t, c.sql)
			b.Want.Password.Seq++
			if err := b.Driver.SetPassword(t.Context(), instanceOf(b)); err != nil {
				t.Fatal(err)
			}
			b.MustQuery(t, "SELECT count(md5(n::text)) FROM generate_series(1, 100000) n") // takes some time
			b.MustQuery(t, "CREATE ROLE app_after")
			left := b.MustQuery(t, `SELECT r.rolconnlimit || ' ' || r.rolcanlogin || ' ' || coalesce(r.rolvaliduntil::text, 'infinity') || ' ' ||
				(SELECT array_agg(x ORDER BY x) FROM pg_db_role_setting s, unnest(s.setconfig) x WHERE s.setrole = r.oid)::text
				FROM pg_roles r WHERE rolname = 'master'`)
			if left != "-1 true infinity {lock_timeout=30s}" {
				t.Errorf("left: %s", left)
			}
		})
	}
}
