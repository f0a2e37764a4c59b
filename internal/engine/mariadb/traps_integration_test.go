//go:build integration

package mariadb

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/enginetest"
	"kurabe/internal/engine/mariadb/door"
	"kurabe/internal/engine/mariadb/sqltext"
)

// The proof is a CSV file: it can be read of any copy, and no statement's end takes a row back.
const proofFile = "trap/proof.CSV"

// layTraps puts hostile objects of each kind into every schema that the master user can write
// to, under the names of what the service and its tools ask for.
func layTraps(t *testing.T, b *enginetest.Bed) {
	t.Helper()
	const note = "INSERT INTO trap.proof VALUES ('%s', USER(), CURRENT_USER())"
	statements := []string{"CREATE DATABASE trap", "CREATE TABLE trap.proof (what VARCHAR(60) NOT NULL, who VARCHAR(200) NOT NULL, rights VARCHAR(200) NOT NULL) ENGINE=CSV"}
	for _, schema := range []string{"trap", "shop", "sys", "rdsprobe_not_the_services", "`information schema`"} {
		if schema != "trap" && schema != "shop" && schema != "sys" {
			statements = append(statements, "CREATE DATABASE "+schema)
		}
		for _, name := range []string{
			"CONCAT_WS", "JSON_VALUE", "BINLOG_GTID_POS", "IFNULL", "QUOTE", "LOWER", "SLEEP", "VERSION", "version_major", "rds_kill", "rds_heartbeat2", "bt_check",
		} {
			statements = append(statements, fmt.Sprintf("CREATE OR REPLACE FUNCTION %s.%s (a TEXT) RETURNS INT SQL SECURITY INVOKER BEGIN "+note+"; RETURN 1; END", schema, sqltext.Name(name), "function"))
		}
		for _, name := range []string{"global_priv", "proc", "event", "TABLES", "SYSTEM_VARIABLES", "PROCESSLIST", "rds_probe", "user", "probe"} {
			statements = append(statements, fmt.Sprintf("CREATE OR REPLACE SQL SECURITY INVOKER VIEW %s.%s AS SELECT %[1]s.JSON_VALUE('x') AS User, 1 AS Host, 2 AS name, 3 AS comment, 4 AS id, 5 AS word", schema, sqltext.Name(name)))
		}
		statements = append(statements,
			fmt.Sprintf("CREATE PROCEDURE %s.rds_kill(a INT) SQL SECURITY INVOKER "+note, schema, "procedure"),
			fmt.Sprintf("CREATE TABLE %s.bait (id INT PRIMARY KEY, word VARCHAR(100) DEFAULT (CONCAT(@@hostname, CURRENT_USER())), twice INT AS (id * 2) VIRTUAL, more INT AS (id + 1) PERSISTENT, KEY (twice), CHECK (id < 1000000))", schema),
			fmt.Sprintf("CREATE TRIGGER %[1]s.before_it BEFORE INSERT ON %[1]s.bait FOR EACH ROW "+strings.ReplaceAll(note, "%s", "%[2]s"), schema, "trigger"),
			fmt.Sprintf("CREATE TRIGGER %[1]s.after_it AFTER DELETE ON %[1]s.bait FOR EACH ROW "+strings.ReplaceAll(note, "%s", "%[2]s"), schema, "trigger"),
			fmt.Sprintf("CREATE EVENT %s.soon ON SCHEDULE EVERY 1 SECOND DO "+note, schema, "event"),
			fmt.Sprintf("INSERT INTO %s.bait (id) VALUES (1)", schema),
		)
	}
	statements = append(statements,
		// What leaves a verification nothing to check.
		"CREATE TABLE shop.kept (a INT PRIMARY KEY)", "CREATE TABLE shop.gone (a INT PRIMARY KEY)", "ALTER TABLE shop.gone DISCARD TABLESPACE",
		"CREATE TABLE shop.one (a INT PRIMARY KEY) ENGINE=MyISAM", "CREATE TABLE shop.both (a INT PRIMARY KEY) ENGINE=MERGE UNION=(shop.one)", "ALTER TABLE shop.one ENGINE=InnoDB",
		"CREATE TABLE shop.nothing (a INT PRIMARY KEY) ENGINE=MERGE UNION=(shop.nowhere)",
	)
	for _, s := range statements {
		b.MustQuery(t, s)
	}
	if sprung := b.MustQuery(t, "SELECT COUNT(*) FROM trap.proof WHERE what = 'trigger'"); sprung != "5" {
		t.Fatalf("%s triggers have left a proof", sprung)
	}
}

// unsprung demands that nothing ran with rights other than the master user's.
func unsprung(t *testing.T, dataDir, master, after string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dataDir, proofFile))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if !strings.HasSuffix(strings.TrimSpace(line), `,"`+master+`@%"`) {
			t.Errorf("after %s: %s", after, line)
		}
	}
}

// Everything that the service does with a server and with its copies, over traps of each kind.
func TestTraps(t *testing.T) {
	b := logBed(t, map[string]string{"event_scheduler": "ON", "log_bin_trust_function_creators": "1"})
	layTraps(t, b)
	look := func(t *testing.T, n *enginetest.Bed, after string) {
		t.Helper()
		unsprung(t, n.Home().DataDir(), n.Want.MasterUsername, after)
	}
	s := openStream(t, b)
	s.mark(t)
	b.MustQuery(t, "INSERT INTO shop.bait (id) VALUES (2)")
	id, facts := b.Take(t)
	look(t, b, "a snapshot")
	b.MustQuery(t, "INSERT INTO shop.bait (id) VALUES (3)")
	s.mark(t)
	still := s.mark(t)

	for name, change := range map[string]func(){
		"a restart": func() { b.Want.Boot++ },
		"a password": func() {
			b.Want.Password.Seq++
		},
		"a parameter": func() {
			b.Set(map[string]string{"event_scheduler": "ON", "log_bin_trust_function_creators": "1", "long_query_time": "3"})
		},
	} {
		change()
		b.Want.Generation++
		b.Satisfy(t)
		if err := b.Driver.Probe(t.Context(), b.Instance(), filepath.Join(b.Home().TLSDir(), door.AuthorityFile)); err != nil {
			t.Errorf("a probe after %s: %v", name, err)
		}
		look(t, b, name)
	}
	b.Crash(t)
	b.Satisfy(t)
	look(t, b, "a crash")

	t.Run("verification", func(t *testing.T) {
		n, fresh := freshCopy(t, b, id)
		r := s.request(t, facts.Position, still.At)
		checked, err := b.Driver.(*Driver).Check(t.Context(), n.Instance(), fresh, engine.CheckRequest{Replay: &r})
		if err != nil || len(checked.Problems) > 0 {
			t.Fatalf("%+v, %v", checked, err)
		}
		said := strings.Join(checked.Notes, "\n")
		for _, table := range []string{"shop.gone was not checked: ", "shop.both was not checked: ", "shop.nothing was not checked: "} {
			if !strings.Contains(said, table) {
				t.Errorf("%s is not among what was not checked: %s", table, said)
			}
		}
		if len(checked.Notes) != 3 {
			t.Errorf("not checked: %q", checked.Notes)
		}
		unsprung(t, fresh, n.Want.MasterUsername, "a verification")
	})
	t.Run("a moment", func(t *testing.T) {
		n := restore(t, b, id, s.request(t, facts.Position, still.At))
		if got := n.MustQuery(t, "SELECT GROUP_CONCAT(id ORDER BY id) FROM shop.bait"); got != "1,2,3" {
			t.Errorf("rows %s", got)
		}
		look(t, n, "a replay")
		n.Discard(t)
	})
	t.Run("a private session", func(t *testing.T) { privateMayNot(t, b, id) })
	t.Run("a pair", func(t *testing.T) { trapsOfPair(t, b, look) })
}

// trapsOfPair makes the server one of two, and the other one its successor.
func trapsOfPair(t *testing.T, b *enginetest.Bed, look func(*testing.T, *enginetest.Bed, string)) {
	b.MustQuery(t, "DROP TABLE IF EXISTS shop.t")
	p := joinPair(t, pair{b, enginetest.NewBed(t, setup(t, b.Root))})
	p.waitForFollower(t)
	p.writer.MustQuery(t, "INSERT INTO shop.bait (id) VALUES (10)")
	p.awaitFollowing(t)
	look(t, p.writer, "a conversion")
	look(t, p.follower, "following")
	p.writer.Crash(t)
	p.promote(t)
	p.follower.MustQuery(t, "INSERT INTO shop.bait (id) VALUES (11)")
	p.rejoin(t)
	look(t, p.follower, "a failover")
	look(t, p.writer, "a return")
	p.writer.Discard(t)
	p.follower.Discard(t)
}

// privateMayNot: what is asked of a private server cannot execute what a user made.
func privateMayNot(t *testing.T, b *enginetest.Bed, id kurabe.SnapshotID) {
	n, fresh := freshCopy(t, b, id)
	s, err := openPrivate(t.Context(), n.Instance(), fresh)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}()
	if err := errors.Join(s.settle(t.Context()), s.launch(t.Context(), privateOptions{account: true})); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		"SELECT trap.JSON_VALUE('x')", "SELECT * FROM trap.proc", "CALL trap.rds_kill(1)", "INSERT INTO trap.bait (id) VALUES (5)", "SET GLOBAL event_scheduler = ON",
		"SELECT 1 INTO OUTFILE '" + s.seenPath("x") + "'", "INSERT INTO mysql.global_priv VALUES ('%', 'x', '{}')", "GRANT EXECUTE ON *.* TO CURRENT_USER", "DO SYS.VERSION('x')",
	} {
		if _, err := s.rows(t.Context(), statement); err == nil {
			t.Errorf("a private session may: %s", statement)
		}
	}
	if rows, err := s.rows(t.Context(), "SELECT IFNULL(LOAD_FILE('"+s.seenPath(privateInit)+"'), '') AS text"); err != nil || rows[0]["text"] != "" {
		t.Errorf("it reads files: %v, %v", rows, err)
	}
	unsprung(t, fresh, n.Want.MasterUsername, "what a private session asked for")
}
