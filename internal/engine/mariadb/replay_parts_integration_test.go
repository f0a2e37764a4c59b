//go:build integration

package mariadb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/enginetest"
	"kurabe/internal/engine/mariadb/binlog"
)

// tornLog: what a crash left half is not applied.
func tornLog(t *testing.T, b *enginetest.Bed, id kurabe.SnapshotID, r engine.ReplayRequest) {
	tear(t, r.Dir)
	n := restore(t, b, id, r)
	const halves = "SELECT COUNT(*) FROM (SELECT n FROM ledger GROUP BY n HAVING COUNT(*) <> 2) AS x"
	const rows = "SELECT COUNT(*) + %d FROM ledger"
	if got, want := n.MustQuery(t, fmt.Sprintf(rows, 2)), b.MustQuery(t, fmt.Sprintf(rows, 0)); got != want || n.MustQuery(t, halves) != "0" {
		t.Errorf("%s rows with the torn one, not %s", got, want)
	}
	n.Discard(t)
}

// statements are those that are logged as such, and others with a meaning of their own.
func statements(t *testing.T, b *enginetest.Bed) {
	t.Helper()
	err := run(t.Context(), masterPool(t, b), []string{
		"CREATE TABLE shop.t (id INT AUTO_INCREMENT PRIMARY KEY, u CHAR(36) DEFAULT UUID(), at TIMESTAMP(6) DEFAULT NOW(6)) ENGINE=InnoDB",
		"INSERT INTO shop.t () VALUES (), (), ()", "ALTER TABLE shop.t ADD note TEXT, ADD INDEX (u)", "UPDATE shop.t SET note = CONCAT(UUID(), RAND())",
		"CREATE TABLE shop.copied AS SELECT * FROM shop.t", "CREATE TABLE shop.m (n INT) ENGINE=MyISAM", "INSERT INTO shop.m VALUES (1), (2)",
		"CREATE TABLE shop.a (n INT) ENGINE=Aria", "INSERT INTO shop.a SELECT id FROM shop.t",
		"CREATE SEQUENCE shop.seq START WITH 100", "SELECT NEXT VALUE FOR shop.seq", "SELECT NEXT VALUE FOR shop.seq",
		"CREATE TEMPORARY TABLE shop.tmp AS SELECT * FROM shop.t", "INSERT INTO shop.copied SELECT * FROM shop.tmp", "DROP TEMPORARY TABLE shop.tmp",
		"CREATE TABLE shop.fired (n INT)", "CREATE TRIGGER shop.tr AFTER INSERT ON shop.m FOR EACH ROW INSERT INTO shop.fired VALUES (NEW.n)", "INSERT INTO shop.m VALUES (3)",
		"CREATE EVENT shop.ev ON SCHEDULE EVERY 1 SECOND DO INSERT INTO shop.fired VALUES (-1)",
		"CREATE PROCEDURE shop.p() INSERT INTO shop.fired VALUES (-2)", "CALL shop.p()", "CREATE FUNCTION shop.f() RETURNS INT RETURN 7", "CREATE VIEW shop.v AS SELECT * FROM shop.t",
		"CREATE USER kept@'%' IDENTIFIED BY 'Kept-password-1'", "CREATE USER gone@'%' IDENTIFIED BY 'x'", "GRANT SELECT, INSERT ON shop.* TO kept@'%'",
		"CREATE ROLE readers", "GRANT SELECT ON shop.t TO readers", "GRANT readers TO kept@'%'", "SET PASSWORD FOR kept@'%' = PASSWORD('Other-password-1')", "DROP USER gone@'%'",
		"XA START 'x'", "INSERT INTO shop.t () VALUES ()", "XA END 'x'", "XA PREPARE 'x'", "XA COMMIT 'x'",
		"SET TIMESTAMP = 4000000000", "INSERT INTO shop.t () VALUES ()", "SET TIMESTAMP = DEFAULT", "CREATE DATABASE other CHARACTER SET latin1", "CREATE TABLE other.o (a VARCHAR(9))",
		"ALTER EVENT shop.ev DISABLE",
	})
	if err != nil {
		t.Fatal(err)
	}
}

// sameAs compares all that statements has made.
func sameAs(t *testing.T, n, b *enginetest.Bed) {
	t.Helper()
	for _, table := range []string{"ledger", "shop.t", "shop.copied", "shop.m", "shop.a", "shop.seq", "shop.fired"} {
		q := "SELECT GROUP_CONCAT(h) FROM (SELECT COUNT(*) AS h FROM " + table + ") AS x"
		if got, want := n.MustQuery(t, q), b.MustQuery(t, q); got != want {
			t.Errorf("%s: %s rows, not %s", table, got, want)
		}
		if table == "shop.seq" {
			continue
		}
		sum := func(b *enginetest.Bed) string {
			return looking(t, b, "CHECKSUM TABLE "+strings.TrimPrefix("shop."+strings.TrimPrefix(table, "shop."), " "))[0][1]
		}
		if got, want := sum(n), sum(b); got != want {
			t.Errorf("%s: checksum %s, not %s", table, got, want)
		}
	}
	for _, q := range []string{
		"SELECT next_not_cached_value FROM shop.seq", "SELECT GROUP_CONCAT(User, Host, Priv ORDER BY 1 SEPARATOR '\n') FROM mysql.global_priv WHERE User IN ('kept', 'gone', 'readers')",
		"SELECT GROUP_CONCAT(User, Host, Role) FROM mysql.roles_mapping", "SELECT GROUP_CONCAT(Db, User, Select_priv, Insert_priv, Delete_priv) FROM mysql.db",
		"SELECT GROUP_CONCAT(name, status, definer) FROM mysql.event", "SELECT GROUP_CONCAT(db, '.', name, definer, body_utf8 ORDER BY 1) FROM mysql.proc WHERE db = 'shop'",
		"SELECT GROUP_CONCAT(TABLE_SCHEMA, TABLE_NAME, IFNULL(ENGINE, ''), IFNULL(TABLE_COLLATION, '') ORDER BY 1) FROM information_schema.TABLES WHERE TABLE_SCHEMA IN ('shop', 'other')",
		"SELECT COUNT(*) FROM mysql.gtid_slave_pos", "SELECT COUNT(*) FROM mysql.global_priv WHERE User LIKE 'rdsprivate%'", "SELECT @@gtid_slave_pos",
	} {
		if got, want := looking(t, n, q)[0][0], looking(t, b, q)[0][0]; got != want {
			t.Errorf("%s: %s, not %s", q, got, want)
		}
	}
	login := n.Login()
	login.User, login.Password, login.Database = "kept", "Other-password-1", ""
	if _, err := n.Query(t.Context(), login, "SELECT * FROM shop.t"); err != nil {
		t.Errorf("a user of the log: %v", err)
	}
}

// damagedLog: what is not whole is an error, never an older database.
func damagedLog(t *testing.T, b *enginetest.Bed, id kurabe.SnapshotID, s *stream, from kurabe.LogPosition, at time.Time) {
	n, fresh := freshCopy(t, b, id)
	replay := func(harm func(r *engine.ReplayRequest, names []string)) error {
		r := s.request(t, from, at)
		names, err := binlog.List(r.Dir)
		if err != nil {
			t.Fatal(err)
		}
		harm(&r, names)
		return b.Driver.(*Driver).Replay(t.Context(), n.Instance(), fresh, r)
	}
	for name, harm := range map[string]func(r *engine.ReplayRequest, names []string){
		"an event": func(r *engine.ReplayRequest, names []string) {
			flip(t, filepath.Join(r.Dir, names[len(names)-1]), 2000)
		},
		"a file is missing": func(r *engine.ReplayRequest, names []string) { remove(t, filepath.Join(r.Dir, names[1])) },
		"the last is missing": func(r *engine.ReplayRequest, names []string) {
			remove(t, filepath.Join(r.Dir, names[len(names)-1]))
		},
		"the last is short": func(r *engine.ReplayRequest, names []string) {
			truncateTo(t, filepath.Join(r.Dir, names[len(names)-1]), r.After.Position.Offset-1)
		},
		"the end of one is missing": func(r *engine.ReplayRequest, names []string) {
			truncateTo(t, filepath.Join(r.Dir, names[0]), lastGroup(t, filepath.Join(r.Dir, names[0])))
		},
	} {
		if err := replay(harm); err == nil {
			t.Errorf("%s: no error", name)
		} else {
			t.Logf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Driver.(*Driver).Replay(ctx, n.Instance(), fresh, s.request(t, from, at)); !errors.Is(err, context.Canceled) {
		t.Errorf("without time: %v", err)
	}
}

// tear takes the end of the last transaction from the file that a crash ended.
func tear(t *testing.T, dir string) {
	t.Helper()
	names, err := binlog.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names[:len(names)-1] {
		file, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		info, err := file.Stat()
		if err != nil {
			t.Fatal(err)
		}
		r := binlog.Reader{Source: file, Until: info.Size(), CopyTo: io.Discard}
		var last, end binlog.Event
		err = r.ReadMagic()
		for err == nil {
			var e binlog.Event
			if e, err = r.Next(); err == nil {
				last = e
			}
			if e.Kind == binlog.XIDEvent {
				end = e
			}
		}
		_ = file.Close()
		if errors.Is(err, io.EOF) && !last.Ends() && end.At > 0 {
			truncateTo(t, filepath.Join(dir, name), end.At)
			return
		}
	}
	t.Fatal("no file was ended by a crash")
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func truncateTo(t *testing.T, path string, size int64) {
	t.Helper()
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
}

func flip(t *testing.T, path string, at int64) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	b := make([]byte, 1)
	if _, err := file.ReadAt(b, at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 0x10
	if _, err := file.WriteAt(b, at); err != nil {
		t.Fatal(err)
	}
}

// lastGroup is where the last group but one of a file ends.
func lastGroup(t *testing.T, path string) int64 {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	r := binlog.Reader{Source: file, Until: info.Size(), CopyTo: io.Discard}
	var g binlog.Grouper
	var before, last int64
	err = r.ReadMagic()
	for err == nil {
		var e binlog.Event
		if e, err = r.Next(); err == nil {
			if whole, ok := g.Add(e); ok {
				before, last = last, whole.End
			}
		}
	}
	if !errors.Is(err, io.EOF) || before == 0 {
		t.Fatal(last, err)
	}
	return before
}

func checks(t *testing.T, b *enginetest.Bed, id kurabe.SnapshotID, s *stream, facts kurabe.SnapshotFacts, at time.Time) {
	n, fresh := freshCopy(t, b, id)
	r := s.request(t, facts.Position, at)
	begin := time.Now()
	checked, err := b.Driver.(*Driver).Check(t.Context(), n.Instance(), fresh, engine.CheckRequest{Marker: facts.TakenAt.Add(-time.Minute), Replay: &r})
	if err != nil || len(checked.Problems) > 0 || checked.Marker.IsZero() || checked.Marker.After(time.Now()) {
		t.Fatalf("%+v, %v", checked, err)
	}
	t.Logf("checked in %v", time.Since(begin).Round(time.Millisecond))
	n, fresh = freshCopy(t, b, id)
	checked, err = b.Driver.(*Driver).Check(t.Context(), n.Instance(), fresh, engine.CheckRequest{Marker: time.Now()})
	if err != nil || len(checked.Problems) != 1 {
		t.Errorf("an old marker: %+v, %v", checked, err)
	}
	path := filepath.Join(fresh, "shop", "ledger.ibd")
	flip(t, path, 3*16384+200)
	checked, err = b.Driver.(*Driver).Check(t.Context(), n.Instance(), fresh, engine.CheckRequest{})
	if err != nil || len(checked.Problems) == 0 || !strings.Contains(strings.Join(checked.Problems, "\n"), "ledger") {
		t.Errorf("a damaged page: %+v, %v", checked, err)
	}
	t.Logf("%q", checked.Problems)
}

// drops: switched off, nothing is left but a name that no later log takes again.
func drops(t *testing.T, b *enginetest.Bed) {
	driver := b.Driver.(*Driver)
	before, err := binlog.List(b.Home().DataDir())
	if err != nil {
		t.Fatal(err)
	}
	b.Want.Log, b.Want.Boot, b.Want.Generation = false, b.Want.Boot+1, b.Want.Generation+1
	b.Satisfy(t)
	if _, err := driver.OpenLog(t.Context(), b.Instance()); !errors.Is(err, engine.ErrNotReady) {
		t.Errorf("a log that is off: %v", err)
	}
	for range 2 {
		if err := driver.DropLog(t.Context(), b.Instance()); err != nil {
			t.Fatal(err)
		}
	}
	if used, err := filepath.Glob(filepath.Join(b.Home().DataDir(), binlog.BaseName+"*")); err != nil || len(used) != 1 {
		t.Errorf("left: %v, %v", used, err)
	}
	b.Want.Log, b.Want.Boot, b.Want.Generation = true, b.Want.Boot+1, b.Want.Generation+1
	b.Satisfy(t)
	now := inside(t, b, "SHOW MASTER STATUS")[0][0]
	if binlog.FileNumber(now) <= binlog.FileNumber(before[len(before)-1]) {
		t.Errorf("%s follows %v", now, before)
	}
	for n := range 20 {
		b.MustQuery(t, fmt.Sprintf("INSERT INTO ledger VALUES (%d, 0, 0)", 5_000_000+n))
	}
	rows := b.MustQuery(t, "SELECT COUNT(*) FROM ledger")
	// A server that died with a log does not start without it.
	b.Crash(t)
	b.Want.Log, b.Want.Boot, b.Want.Generation = false, b.Want.Boot+1, b.Want.Generation+1
	var refused *engine.StartError
	if err := b.TrySatisfy(t.Context()); !errors.As(err, &refused) || !strings.Contains(refused.Message, "binary log") {
		t.Errorf("started without its log: %v", err)
	}
	now = closedTooEarly(t, b, rows)
	// Nor does a copy lose what it alone has.
	b.Want.Log, b.Want.Goal, b.Want.Generation = true, kurabe.GoalStopped, b.Want.Generation+1
	b.Satisfy(t)
	id, facts := b.Take(t)
	if facts.Position.File != now || facts.Position.Offset == 0 {
		t.Errorf("the position of a stopped server is %s", facts.Position)
	}
	n := b.From(t, id)
	n.Want.Log = false
	n.Satisfy(t)
	if got := n.MustQuery(t, "SELECT COUNT(*) FROM ledger"); got != rows {
		t.Errorf("%s rows, not %s", got, rows)
	}
	withoutLogs(t, n.Home().DataDir())
}

// closedTooEarly: a server that was killed between closing its binary log and InnoDB's
// last writing says that all ended well, and recovers all the same.
func closedTooEarly(t *testing.T, b *enginetest.Bed, rows string) (newest string) {
	t.Helper()
	names, err := binlog.List(b.Home().DataDir())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(b.Home().DataDir(), names[len(names)-1])
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	flags := make([]byte, 1)
	if _, err := file.ReadAt(flags, binlog.FileFlagsAt); err != nil || flags[0]&binlog.InUseFlag == 0 {
		t.Fatalf("the log of a server that was killed has the flags %v, %v", flags, err)
	}
	_, err = file.WriteAt([]byte{flags[0] &^ binlog.InUseFlag}, binlog.FileFlagsAt)
	if err = errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	b.Want.Log, b.Want.Generation = true, b.Want.Generation+1
	var refused *engine.StartError
	if err := b.TrySatisfy(t.Context()); !errors.As(err, &refused) || !leftPrepared.MatchString(refused.Message) {
		t.Fatalf("the server does not miss what its log has: %v", err)
	}
	b.Satisfy(t)
	if got := b.MustQuery(t, "SELECT COUNT(*) FROM ledger"); got != rows {
		t.Errorf("%s rows, not %s", got, rows)
	}
	// As it was before, for what follows.
	newest = inside(t, b, "SHOW MASTER STATUS")[0][0]
	b.MustQuery(t, "INSERT INTO ledger VALUES (5999999, 0, 0)")
	b.MustQuery(t, "DELETE FROM ledger WHERE n = 5999999")
	b.Crash(t)
	return newest
}
