//go:build integration

package mariadb

import (
	"testing"

	"kurabe/internal/engine/enginetest"
)

// A new master password is the way in again, whatever the master user has done to itself.
func TestNewPasswordLetsIn(t *testing.T) {
	b := enginetest.NewBed(t, setup(t, enginetest.Reachable(t)))
	b.Satisfy(t)
	for _, c := range []struct{ name, sql string }{
		{"a query an hour", "ALTER USER CURRENT_USER() WITH MAX_QUERIES_PER_HOUR 1"},
		{"an update an hour", "ALTER USER CURRENT_USER() WITH MAX_UPDATES_PER_HOUR 1"},
		{"a connection an hour", "ALTER USER CURRENT_USER() WITH MAX_CONNECTIONS_PER_HOUR 1"},
		{"no time", "ALTER USER CURRENT_USER() WITH MAX_STATEMENT_TIME 0.000001"},
		{"locked", "ALTER USER 'master'@'%' ACCOUNT LOCK"},
		{"expired", "ALTER USER 'master'@'%' PASSWORD EXPIRE"},
		{"with a certificate", "ALTER USER 'master'@'%' REQUIRE SUBJECT '/CN=lost'"},
		{"another password", "ALTER USER 'master'@'%' IDENTIFIED BY 'Lost-password-1'"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b.MustQuery(t, c.sql)
			for range 2 {
				_, _ = query(t.Context(), b.Login(), "SELECT 1") // uses up what there is
			}
			b.Want.Password.Seq++
			if err := b.Driver.SetPassword(t.Context(), b.Instance()); err != nil {
				t.Fatal(err)
			}
			for range 4 {
				b.MustQuery(t, "CREATE OR REPLACE TABLE shop.lockout (n INT)")
			}
			b.MustQuery(t, "SELECT COUNT(*) FROM information_schema.COLUMNS")
		})
	}
	// What is a wish and no way out of one's own house stays.
	b.MustQuery(t, "ALTER USER 'master'@'%' REQUIRE SSL")
	b.Want.Password.Seq++
	if err := b.Driver.SetPassword(t.Context(), b.Instance()); err != nil {
		t.Fatal(err)
	}
	open := b.Login()
	open.CAFile = ""
	if _, err := query(t.Context(), open, "SELECT 1"); err == nil {
		t.Error("TLS is asked for no more")
	}
}
