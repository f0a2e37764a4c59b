//go:build integration

package mariadb

import (
	"strings"
	"testing"

	"kurabe/internal/engine/enginetest"
	"kurabe/internal/engine/mariadb/conf"
)

// Accounts may have passwords of ed25519, in a restored instance and a follower too.
func TestEd25519(t *testing.T) {
	p := newPair(t)
	b := p.writer
	if conf.ReadPassword(b.Instance(), b.Driver.(*Driver).pluginDir) == "" {
		t.Skipf("no %s: scripts/install.sh fetches it", conf.PasswordFile)
	}
	makeEd25519(t, b)
	b.MustQuery(t, "INSERT INTO t VALUES (5, 'behind the account')")
	awaitRow(t, p.follower, 5)
	comesIn(t, b)

	alone := enginetest.Serving(t, setup(t, enginetest.Reachable(t)))
	makeEd25519(t, alone)
	id, _ := alone.Take(t)
	comesIn(t, alone.Restore(t, id))
}

func makeEd25519(t *testing.T, b *enginetest.Bed) {
	t.Helper()
	b.MustQuery(t, "CREATE USER ed@'%' IDENTIFIED VIA ed25519 USING PASSWORD('Ed-password-1')")
	b.MustQuery(t, "GRANT SELECT ON shop.* TO ed@'%'")
}

func comesIn(t *testing.T, b *enginetest.Bed) {
	t.Helper()
	login := b.Login()
	login.User, login.Password = "ed", "Ed-password-1"
	if _, err := b.Query(t.Context(), login, "SELECT 1"); err != nil {
		t.Error(err)
	}
	s := bedServer(b)
	s.user, s.password = "ed", "Ed-password-1"
	if got := s.ask(t, "SELECT CURRENT_USER()"); got != "ed@%" {
		t.Errorf("the client is %q", got)
	}
	s.password = "Ed-password-2"
	if _, err := s.call(t, nil, "mariadb", "--execute=SELECT 1"); err == nil || !strings.Contains(err.Error(), "1045") {
		t.Errorf("with another password: %v", err)
	}
}
