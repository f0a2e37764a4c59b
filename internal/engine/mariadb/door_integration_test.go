//go:build integration

package mariadb

import (
	"errors"
	"strings"
	"testing"

	"kurabe/internal/engine/enginetest"
	"kurabe/internal/engine/mariadb/conf"
	"kurabe/internal/engine/mariadb/door"
	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/engine/mariadb/sqltext"
)

// traps are what a user can lay in a schema of its own: each leaves a row in trap.proof that says
// with whose rights it ran.
var traps = []string{
	"CREATE DATABASE trap", "CREATE TABLE trap.proof (what VARCHAR(60), who VARCHAR(200), rights VARCHAR(200))",
	"CREATE TABLE trap.bait (id INT PRIMARY KEY, word VARCHAR(64))",
	"CREATE FUNCTION trap.f(what VARCHAR(60)) RETURNS INT SQL SECURITY INVOKER BEGIN INSERT INTO trap.proof VALUES (what, USER(), CURRENT_USER()); RETURN 1; END",
	"CREATE FUNCTION trap.d() RETURNS INT BEGIN INSERT INTO trap.proof VALUES ('definer', USER(), CURRENT_USER()); RETURN 1; END",
	"CREATE FUNCTION trap.g() RETURNS INT RETURN 1", // no table in it
	"CREATE PROCEDURE trap.p() SQL SECURITY INVOKER INSERT INTO trap.proof VALUES ('procedure', USER(), CURRENT_USER())",
	"CREATE TRIGGER trap.fired BEFORE INSERT ON trap.bait FOR EACH ROW INSERT INTO trap.proof VALUES ('trigger', USER(), CURRENT_USER())",
	"CREATE SQL SECURITY INVOKER VIEW trap.v AS SELECT trap.f('view') AS id",
	"CREATE VIEW trap.w AS SELECT id FROM trap.bait",
}

// The probe writes as the service into a schema of its own where clients are turned away and
// its table is broken. Whoever is faster than that lays a trigger there.
func TestProbeSpringsNoTrap(t *testing.T) {
	enginetest.OnceIsEnough(t)
	b := enginetest.Serving(t, setup(t, enginetest.Reachable(t)))
	p := probe{name: conf.ProbePrefix + door.RandomHex()}
	for _, s := range append(append(traps, p.before()...), p.write()[0],
		"CREATE TRIGGER "+sqltext.Name(p.name)+".fired BEFORE INSERT ON "+p.table()+" FOR EACH ROW INSERT INTO trap.proof VALUES ('probe', USER(), CURRENT_USER())") {
		b.MustQuery(t, s)
	}
	err := guard.With(t.Context(), b.Instance(), func(a *guard.Session) error { return a.ExecAll(t.Context(), p.write()[1:]...) })
	if said := new(guard.Error); !errors.As(err, &said) || said.Number != guardSays {
		t.Errorf("the write of a probe: %v", err)
	}
	if got := b.MustQuery(t, "SELECT IFNULL(GROUP_CONCAT(what, ' as ', rights), '') FROM trap.proof"); got != "" {
		t.Errorf("a trap was sprung: %s", got)
	}
	if err := b.Driver.Probe(t.Context(), b.Instance(), b.Login().CAFile); err != nil { // and it is swept away
		t.Error(err)
	}
}

// What a session of the service's is refused, whoever makes it ask.
func TestServiceTouchesNothingOfUsers(t *testing.T) {
	enginetest.OnceIsEnough(t)
	b := enginetest.Serving(t, setup(t, enginetest.Reachable(t)))
	for _, s := range traps {
		b.MustQuery(t, s)
	}
	if rows := inside(t, b, "SELECT @@GLOBAL.kurabe_guard_closed, @@GLOBAL.kurabe_guard_members"); rows[0][0] != "1" || rows[0][1] != "1" {
		t.Fatalf("the guard has not found its places in the server: %v", rows)
	}
	for _, statement := range []string{
		"SELECT * FROM trap.bait", "INSERT INTO trap.bait VALUES (1, 'x')", "SELECT trap.f('function')", "SELECT trap.d()", "SELECT trap.g()", "DO trap.f('do')", "CALL trap.p()",
		"SELECT * FROM trap.v", "SELECT * FROM trap.w", "SET @x = trap.f('set')", "SELECT User FROM mysql.global_priv WHERE trap.f('where') = 1",
		"UPDATE mysql.rds_probe, trap.bait SET mysql.rds_probe.word = 'x'", "CHECK TABLE trap.bait", "TRUNCATE trap.bait", "PREPARE s FROM 'SELECT trap.d()'; EXECUTE s",
		"EXECUTE IMMEDIATE 'CALL trap.p()'", "CREATE TABLE trap.made AS SELECT * FROM trap.bait",
	} {
		err := guard.With(t.Context(), b.Instance(), func(a *guard.Session) error {
			_, err := a.Query(t.Context(), statement)
			return errors.Join(err, a.Exec(t.Context(), "SELECT 1")) // it goes on
		})
		if err == nil && !strings.HasPrefix(statement, "CHECK") {
			t.Errorf("the service may: %s", statement)
		}
	}
	if got := b.MustQuery(t, "SELECT IFNULL(GROUP_CONCAT(what, ' as ', rights), '') FROM trap.proof"); got != "" {
		t.Errorf("a trap was sprung: %s", got)
	}
	// The traps work.
	for _, s := range []string{"INSERT INTO trap.bait VALUES (1, 'x')", "SELECT * FROM trap.v", "CALL trap.p()", "SELECT trap.d()"} {
		b.MustQuery(t, s)
	}
	if got := b.MustQuery(t, "SELECT GROUP_CONCAT(what ORDER BY what) FROM trap.proof"); got != "definer,procedure,trigger,view" {
		t.Errorf("the traps of users: %s", got)
	}
}
