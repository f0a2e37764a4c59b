package load

import (
	"strings"
	"testing"

	"kurabe/internal/tokenize"
)

func TestSecrets(t *testing.T) {
	for _, statement := range []string{
		"ALTER USER app PASSWORD 'hush'",
		"create role x login encrypted password 'hush'",
		"CREATE USER x IDENTIFIED BY 'hush'",
		"set password for x = password('hush')",
		"create subscription s connection 'host=a password=hush'",
		"change master to master_password='hush'",
		"create user mapping for x server y options (password 'hush')",
		"select dblink_connect('host=a password=hush')",
		"select pgp_sym_encrypt(a, 'hush') from t",
	} {
		if got := textOf(statement, "", tokenize.Dialect{}, false); strings.Contains(got.Statement, "hush") {
			t.Errorf("%q is kept as %q", statement, got.Statement)
		}
	}
	if got := textOf("select 'a'", "", tokenize.Dialect{}, true); got.Statement != "select ?" {
		t.Errorf("masked: %q", got.Statement)
	}
}
