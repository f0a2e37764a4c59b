//go:build integration

package postgres

import (
	"strings"
	"testing"
)

// Without root the engine has the account that the administrative socket lets in as the
// service's role. A user of SQL has its server connect there, as that account, and gets no
// session: neither by a link, nor by a foreign table, nor with settings that load a library at
// the session's start.
func TestAttackSocketFromSQL(t *testing.T) {
	b := running(t)
	b.MustQuery(t, "CREATE EXTENSION dblink")
	b.MustQuery(t, "CREATE EXTENSION postgres_fdw")
	i := instanceOf(b)
	info := "host=" + i.Seen().RunDir() + " port=" + portText(b) + " user=rdsadmin dbname=rdsadmin"
	for name, more := range map[string]string{
		"as it is": "", "with a password": " password=x", "with a password that is empty": " password=''",
		"to replicate": " password=x replication=true", "with a library": " password=x options='-c session_preload_libraries=auto_explain'",
	} {
		for _, sql := range []string{
			"SELECT * FROM dblink(" + quoteLiteral(info+more) + ", 'SELECT current_user::text') AS t(who text)",
			"SELECT dblink_connect('c', " + quoteLiteral(info+more) + ")",
			"SELECT dblink_connect_u('c', " + quoteLiteral(info+more) + ")",
			"SELECT dblink_exec(" + quoteLiteral(info+more) + ", 'ALTER ROLE master SUPERUSER')",
		} {
			if _, err := query(t.Context(), b.Login(), sql); err == nil {
				t.Errorf("%s: %s works", name, sql)
			}
		}
	}
	for _, option := range []string{"password_required 'false'", "sslkey '/etc/passwd'", "sslcert '/etc/passwd'"} {
		setup := "CREATE SERVER own FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host " + quoteLiteral(i.Seen().RunDir()) + ", port " + quoteLiteral(portText(b)) + ", dbname 'rdsadmin'); " +
			"CREATE USER MAPPING FOR master SERVER own OPTIONS (user 'rdsadmin', " + option + ");" +
			"CREATE FOREIGN TABLE roles (rolname name) SERVER own OPTIONS (schema_name 'pg_catalog', table_name 'pg_authid')"
		failed := false
		for _, sql := range append(strings.Split(setup, ";"), "SELECT count(*) FROM roles") {
			if _, err := query(t.Context(), b.Login(), sql); err != nil {
				failed = true
			}
		}
		if !failed {
			t.Errorf("a foreign table with %s is read", option)
		}
		if _, err := query(t.Context(), b.Login(), "DROP SERVER IF EXISTS own CASCADE"); err != nil {
			t.Error(err)
		}
	}
	if got, err := query(t.Context(), b.Login(), "SELECT rolsuper::text FROM pg_roles WHERE rolname = 'master'"); err != nil || got != "false" {
		t.Errorf("the master user is a superuser: %s, %v", got, err)
	}
}
