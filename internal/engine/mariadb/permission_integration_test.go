//go:build integration

package mariadb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"kurabe/internal/engine/enginetest"
	"kurabe/internal/engine/mariadb/guard"
)

// run executes statements in one session of the master user and returns the
// first error.
func run(ctx context.Context, db *sql.DB, statements []string) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	for _, s := range statements {
		rows, err := conn.QueryContext(ctx, s)
		if err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
		for rows.Next() {
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

func masterPool(t *testing.T, b *enginetest.Bed) *sql.DB {
	t.Helper()
	db, err := open(b.Login())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	db.SetMaxIdleConns(0) // A session each: no lock or variable is left to the next case.
	return db
}

// What RDS's master user does with its rights, in this order.
var allowed = [][]string{
	{"CREATE DATABASE app", "CREATE TABLE app.t (a INT PRIMARY KEY, b TEXT)", "INSERT INTO app.t VALUES (1, 'x')", "ALTER TABLE app.t ADD c INT"},
	{"CREATE USER u1@'%' IDENTIFIED BY 'pw-of-u1'", "GRANT ALL ON app.* TO u1@'%' WITH GRANT OPTION", "GRANT ALL ON `%`.* TO u1@'%'"},
	{"GRANT SELECT, RELOAD, PROCESS, REPLICATION SLAVE, REPLICATION CLIENT, SHOW DATABASES, CREATE USER ON *.* TO u1@'%'"},
	{"ALTER USER u1@'%' IDENTIFIED BY 'other-pw'", "SET PASSWORD FOR u1@'%' = PASSWORD('third-pw')", "RENAME USER u1@'%' TO u2@'%'"},
	{"REVOKE ALL ON app.* FROM u2@'%'", "GRANT SELECT (a), UPDATE (b) ON app.t TO u2@'%'", "REVOKE ALL PRIVILEGES, GRANT OPTION FROM u2@'%'"},
	{"CREATE ROLE r1", "GRANT SELECT ON app.* TO r1", "GRANT r1 TO u2@'%'", "SET DEFAULT ROLE r1 FOR u2@'%'", "DROP ROLE r1", "DROP USER u2@'%'"},
	{"CREATE VIEW app.v AS SELECT a FROM app.t", "CREATE TRIGGER app.tr BEFORE INSERT ON app.t FOR EACH ROW SET NEW.b = UPPER(NEW.b)"},
	{"CREATE PROCEDURE app.p() SELECT COUNT(*) FROM app.t", "CALL app.p()", "CREATE FUNCTION app.f() RETURNS INT RETURN 1", "SET @x = app.f()"},
	{"DROP PROCEDURE app.p", "DROP FUNCTION app.f", "CREATE EVENT app.e ON SCHEDULE EVERY 1 DAY DO SET @x = 1", "ALTER EVENT app.e DISABLE", "DROP EVENT app.e"},
	{"SHOW PROCESSLIST", "SHOW ENGINE INNODB STATUS", "SHOW MASTER STATUS", "SELECT User, Host FROM mysql.user", "SELECT * FROM mysql.global_priv"},
	{"FLUSH PRIVILEGES", "FLUSH TABLES", "FLUSH LOGS", "FLUSH STATUS", "FLUSH TABLES WITH READ LOCK", "UNLOCK TABLES"},
	{"CREATE TEMPORARY TABLE app.tmp (a INT)", "LOCK TABLES app.t WRITE", "UNLOCK TABLES"},
	{"ANALYZE TABLE app.t", "OPTIMIZE TABLE app.t", "CHECK TABLE app.t", "REPAIR TABLE app.t"},
	{ // The server writes to its own statistics for these.
		"CREATE TABLE app.s (a INT PRIMARY KEY, b INT, c INT)", "INSERT INTO app.s VALUES (1, 2, 3)", "ANALYZE TABLE app.s PERSISTENT FOR ALL",
		"ALTER TABLE app.s CHANGE c d INT", "ALTER TABLE app.s DROP d, ADD INDEX (b)", "RENAME TABLE app.s TO app.s2", "TRUNCATE TABLE app.s2",
		"OPTIMIZE TABLE app.s2", "DROP TABLE app.s2",
		"CREATE TABLE app.h (a INT, s BIGINT UNSIGNED GENERATED ALWAYS AS ROW START, e BIGINT UNSIGNED GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME (s, e)) WITH SYSTEM VERSIONING ENGINE=InnoDB",
		"INSERT INTO app.h (a) VALUES (1)", "SET system_versioning_alter_history = KEEP", "ALTER TABLE app.h ADD b INT", "DELETE FROM app.h",
	},
	{"SET SESSION sql_mode = 'ANSI'", "SET SESSION time_zone = 'Asia/Tokyo'", "SET NAMES utf8mb4"},
	{"TRUNCATE TABLE app.t", "CREATE PROCEDURE app.left_over() SELECT 1", "DROP DATABASE app"},
	{"USE mysql", "CREATE PROCEDURE shop.here() SELECT 1", "ALTER PROCEDURE shop.here COMMENT 'x'", "DROP PROCEDURE shop.here"},
	{"CALL mysql.rds_innodb_buffer_pool_dump_now()", "CALL mysql.rds_innodb_buffer_pool_load_now()", "CALL mysql.rds_innodb_buffer_pool_load_abort()"},
	{"TRUNCATE TABLE mysql.general_log", "TRUNCATE TABLE mysql.slow_log"},
	{"HELP 'SELECT'", "CHECK TABLE mysql.db", "ANALYZE TABLE mysql.db"},
}

// Server errors of the denied list.
const (
	syntax     = 1064
	noSuchUser = 1045 // "Access denied for user": the right is not there
	needs      = 1227 // "you need (at least one of) the … privilege(s)"
	guardSays  = 1105
	signalled  = 1142
	readOnly   = 1238
)

type denial struct {
	name       string
	statements []string
	numbers    []uint16 // of the error; none means it succeeds and changes nothing
}

// evil is an account with all rights, as it would be written to the grant tables.
const evil = `'%','evil','{"access":18446744073709551615}'`

var denied = []denial{
	{"insert an account", []string{"INSERT INTO mysql.global_priv VALUES (" + evil + ")"}, []uint16{guardSays}},
	{"insert it and ignore errors", []string{"INSERT IGNORE INTO mysql.global_priv VALUES (" + evil + ")"}, []uint16{guardSays}},
	{"replace", []string{"REPLACE INTO mysql.global_priv VALUES (" + evil + ")"}, []uint16{guardSays}},
	{"insert a select", []string{"INSERT INTO mysql.global_priv SELECT " + evil}, []uint16{guardSays}},
	{"insert delayed", []string{"INSERT DELAYED INTO mysql.global_priv VALUES (" + evil + ")"}, []uint16{guardSays, 1616}},
	{"update oneself", []string{"UPDATE mysql.global_priv SET Priv = '{\"access\":18446744073709551615}' WHERE User = CURRENT_USER()", "UPDATE mysql.global_priv SET Priv = '{}'"}, []uint16{guardSays}},
	{"update two tables", []string{"UPDATE mysql.global_priv g, mysql.help_topic h SET g.Priv = '{}'"}, []uint16{guardSays}},
	{"delete", []string{"DELETE FROM mysql.global_priv"}, []uint16{guardSays}},
	{"delete from two tables", []string{"DELETE g FROM mysql.global_priv g JOIN mysql.help_topic h"}, []uint16{guardSays}},
	{"update the view", []string{"UPDATE mysql.user SET Super_priv = 'Y'"}, []uint16{guardSays, 1348, 1288}},
	{"write through a view", []string{"CREATE OR REPLACE VIEW shop.gp AS SELECT * FROM mysql.global_priv", "INSERT INTO shop.gp VALUES (" + evil + ")"}, []uint16{guardSays}},
	{"write from a prepared statement", []string{"EXECUTE IMMEDIATE 'INSERT INTO mysql.db (Host) VALUES (1)'"}, []uint16{guardSays}},
	{"write from a procedure", []string{"CREATE OR REPLACE PROCEDURE shop.w() INSERT INTO mysql.db (Host) VALUES (1)", "CALL shop.w()"}, []uint16{guardSays}},
	{"write from a procedure that goes on after errors", []string{
		"CREATE OR REPLACE PROCEDURE shop.h() BEGIN DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END; INSERT INTO mysql.global_priv VALUES (" + evil + "); END",
		"CALL shop.h()",
	}, nil},
	{"write from a function in a SET", []string{
		"CREATE OR REPLACE FUNCTION shop.s() RETURNS INT BEGIN INSERT INTO mysql.global_priv VALUES (" + evil + "); RETURN 1; END", "SET @x = shop.s()",
	}, []uint16{signalled}},
	{"write from a function in a SET, as anything but an insert", []string{
		"CREATE OR REPLACE FUNCTION shop.s() RETURNS INT BEGIN UPDATE mysql.global_priv SET Priv = '{}'; RETURN 1; END", "SET @x = shop.s()",
	}, []uint16{signalled}},
	{"write from a trigger", []string{
		"CREATE OR REPLACE TABLE shop.tt (a INT)", "CREATE TRIGGER shop.ttr BEFORE INSERT ON shop.tt FOR EACH ROW INSERT INTO mysql.global_priv VALUES (" + evil + ")",
		"INSERT INTO shop.tt VALUES (1)",
	}, []uint16{guardSays}},
	{"lock the accounts and write", []string{"LOCK TABLES mysql.global_priv WRITE", "INSERT INTO mysql.global_priv VALUES (" + evil + ")"}, []uint16{guardSays}},
	{"lock a view of the accounts", []string{"CREATE OR REPLACE VIEW shop.gp AS SELECT * FROM mysql.global_priv", "LOCK TABLES shop.gp WRITE"}, []uint16{guardSays}},
	{"drop a guard", []string{"DROP TRIGGER mysql.kurabe_global_priv_insert"}, []uint16{1360}},
	{"replace a guard", []string{"CREATE OR REPLACE TRIGGER mysql.kurabe_global_priv_insert BEFORE INSERT ON mysql.global_priv FOR EACH ROW SET @a = 1"}, []uint16{1465}},
	{"write routines by hand", []string{"INSERT INTO mysql.proc (db, name, type, specific_name, body, definer) VALUES ('shop', 'z', 'PROCEDURE', 'z', 'SELECT 1', 'root@localhost')"}, []uint16{signalled}},
	{"write events by hand", []string{"CREATE OR REPLACE EVENT shop.ev ON SCHEDULE EVERY 1 DAY DISABLE DO SET @a = 1", "UPDATE mysql.event SET definer = 'root@localhost'"}, []uint16{signalled}},
	{"name a library by hand", []string{"INSERT INTO mysql.plugin VALUES ('a', 'b')"}, []uint16{guardSays}},
	{"name a function's library by hand", []string{"INSERT INTO mysql.func VALUES ('a', 0, 'b', 'function')"}, []uint16{guardSays}},
	{"name a server by hand", []string{"INSERT INTO mysql.servers (Server_name) VALUES ('s')"}, []uint16{guardSays}},

	{"shadow the accounts by a temporary table", []string{
		"CREATE TEMPORARY TABLE mysql.global_priv AS SELECT '%' AS Host, 'evil' AS User, '{\"access\":18446744073709551615}' AS Priv", "FLUSH PRIVILEGES",
	}, nil},
	{"alter the accounts", []string{"ALTER TABLE mysql.global_priv ADD COLUMN z INT"}, []uint16{1005}},
	{"convert the accounts", []string{"ALTER TABLE mysql.global_priv ENGINE = InnoDB"}, []uint16{1005}},
	{"move the accounts out", []string{"RENAME TABLE mysql.global_priv TO shop.gp2"}, []uint16{1435}},
	{"move the accounts aside", []string{"RENAME TABLE mysql.global_priv TO mysql.gp"}, []uint16{7}},
	{"move other accounts in", []string{"CREATE OR REPLACE TABLE shop.gp3 LIKE mysql.global_priv", "RENAME TABLE shop.gp3 TO mysql.global_priv"}, []uint16{1050, 1435}},
	{"drop the accounts", []string{"DROP TABLE mysql.global_priv"}, []uint16{6}},
	{"empty the statistics", []string{"TRUNCATE TABLE mysql.innodb_index_stats"}, []uint16{guardSays}},
	{"empty them from a prepared statement", []string{"EXECUTE IMMEDIATE 'TRUNCATE TABLE mysql.innodb_table_stats'"}, []uint16{guardSays}},
	{"empty them under a lock", []string{"LOCK TABLES mysql.innodb_index_stats WRITE", "TRUNCATE TABLE mysql.innodb_index_stats"}, []uint16{guardSays}},
	{"empty the replication's place under a lock", []string{"LOCK TABLES mysql.gtid_slave_pos WRITE", "TRUNCATE TABLE mysql.gtid_slave_pos"}, []uint16{guardSays}},
	{"empty a partition of them", []string{"ALTER TABLE mysql.innodb_index_stats TRUNCATE PARTITION ALL"}, []uint16{guardSays, 1505}},
	{"move the statistics out", []string{"RENAME TABLE mysql.innodb_index_stats TO shop.stats"}, []uint16{7, 1025}},
	{"alter the statistics", []string{"ALTER TABLE mysql.innodb_table_stats FORCE"}, []uint16{1005}},
	{"take their file away", []string{"ALTER TABLE mysql.innodb_index_stats DISCARD TABLESPACE"}, []uint16{guardSays}},
	{"read the statistics", []string{"SELECT COUNT(*) FROM mysql.innodb_index_stats", "SELECT COUNT(*) FROM mysql.innodb_table_stats", "UPDATE mysql.innodb_table_stats SET n_rows = n_rows"}, nil},
	{"drop the schema", []string{"DROP DATABASE mysql"}, []uint16{6}},
	{"replace the accounts", []string{"CREATE OR REPLACE TABLE mysql.global_priv (a INT)"}, []uint16{6}},
	{"make a table beside them", []string{"CREATE TABLE mysql.x (a INT)"}, []uint16{1005}},
	{"make a view beside them", []string{"CREATE VIEW mysql.x AS SELECT 1"}, []uint16{1}},
	{"make a sequence beside them", []string{"CREATE SEQUENCE mysql.x"}, []uint16{1005}},
	{"repair the accounts", []string{"REPAIR TABLE mysql.global_priv USE_FRM"}, nil},
	{"optimize the accounts", []string{"OPTIMIZE TABLE mysql.global_priv"}, nil},
	{"reach another folder by a schema's name", []string{"CREATE DATABASE `#mysql50#../../x`"}, []uint16{1102}},
	{"reach another folder by a table's name", []string{"CREATE TABLE shop.`#mysql50#../mysql/x` (a INT)"}, []uint16{1103}},

	{"give oneself SUPER", []string{"GRANT SUPER ON *.* TO CURRENT_USER()"}, []uint16{noSuchUser}},
	{"give oneself FILE", []string{"GRANT FILE ON *.* TO CURRENT_USER()"}, []uint16{noSuchUser}},
	{"give oneself everything", []string{"GRANT ALL ON *.* TO CURRENT_USER()"}, []uint16{noSuchUser}},
	{"be a proxy of anybody", []string{"GRANT PROXY ON ''@'' TO CURRENT_USER()"}, []uint16{1698, noSuchUser}},
	{"give a role SUPER", []string{"CREATE OR REPLACE ROLE evil_role", "GRANT SUPER ON *.* TO evil_role"}, []uint16{noSuchUser}},
	{"define a routine as another", []string{"CREATE DEFINER = 'root'@'localhost' PROCEDURE shop.d() SELECT 1"}, []uint16{needs}},
	{"define a view as another", []string{"CREATE DEFINER = 'mariadb.sys'@'localhost' VIEW shop.d AS SELECT 1"}, []uint16{needs}},
	{"put rights into a certificate's name", []string{`CREATE OR REPLACE USER j1@'%' REQUIRE SUBJECT 'a","access":18446744073709551615,"b":"'`, "FLUSH PRIVILEGES"}, nil},
	{"put rights behind a multi-byte character", []string{"SET NAMES sjis", `CREATE OR REPLACE USER j2@'%' REQUIRE ISSUER 0x8F5C222C22616363657373223A3138343436373434303733373039353531363135`, "FLUSH PRIVILEGES"}, []uint16{syntax}},
	{"put rights into a verifier of ed25519", []string{`CREATE OR REPLACE USER j4@'%' IDENTIFIED VIA ed25519 USING 'x","access":18446744073709551615'`}, []uint16{1372}},
	{"put rights into a verifier", []string{`CREATE OR REPLACE USER j3@'%' IDENTIFIED VIA mysql_native_password USING 'x","access":18446744073709551615'`}, []uint16{1372}},

	{"drop a procedure of the service", []string{"DROP PROCEDURE mysql.RDS_Kill"}, []uint16{guardSays}},
	{"drop it if it exists", []string{"DROP PROCEDURE IF EXISTS mysql.rds_kill"}, []uint16{guardSays}},
	{"have it run as its caller", []string{"ALTER PROCEDURE mysql.rds_kill SQL SECURITY INVOKER"}, []uint16{guardSays}},
	{"replace it", []string{"CREATE OR REPLACE PROCEDURE mysql.rds_kill(IN thread BIGINT) SELECT 1"}, []uint16{guardSays}},
	{"put a procedure beside it", []string{"USE mysql", "CREATE PROCEDURE rds_mine() SELECT 1"}, []uint16{guardSays}},
	{"put a function beside it", []string{"CREATE FUNCTION mysql.rds_mine() RETURNS INT RETURN 1"}, []uint16{guardSays}},
	{"put a package beside it", []string{"SET sql_mode = ORACLE", "CREATE PACKAGE mysql.rds_mine AS PROCEDURE p1; END"}, []uint16{guardSays}},
	{"drop it from a prepared statement", []string{"EXECUTE IMMEDIATE 'DROP PROCEDURE mysql.rds_kill'"}, []uint16{guardSays}},
	{"drop it from a procedure", []string{"CREATE OR REPLACE PROCEDURE shop.dp() DROP PROCEDURE mysql.rds_kill", "CALL shop.dp()"}, []uint16{1357}},
	{"say to the guard what its procedures say", []string{"SET SESSION kurabe_guard_kill = 1"}, []uint16{needs}},
	{"say it for all sessions", []string{"SET GLOBAL kurabe_guard_kill = 1"}, []uint16{needs}},
	{"say it for one statement", []string{"SET STATEMENT kurabe_guard_buffer_pool = 'dump_now' FOR SELECT 1"}, []uint16{needs}},
	{"say it in a routine", []string{"CREATE OR REPLACE FUNCTION shop.k() RETURNS INT BEGIN SET kurabe_guard_kill_query = 1; RETURN 1; END", "SELECT shop.k()"}, []uint16{needs}},
	{"say it as the procedures' definer", []string{"CREATE DEFINER = 'mariadb.sys'@'localhost' PROCEDURE shop.k() SET kurabe_guard_kill = 1"}, []uint16{needs}},
	{"say something else", []string{"SET SESSION kurabe_guard_buffer_pool = 'dump_now = 1, max_connections'"}, []uint16{1231}},
	{"end another's session without the procedure", []string{"KILL USER 'mariadb.sys'@'localhost'"}, nil},

	{"read a file", []string{"LOAD DATA INFILE '/etc/passwd' INTO TABLE shop.tt"}, []uint16{noSuchUser}},
	{"write a file", []string{"SELECT 1 INTO OUTFILE '/tmp/kurabe-outfile'"}, []uint16{needs, noSuchUser}},
	{"dump a file", []string{"SELECT 1 INTO DUMPFILE '/tmp/kurabe-outfile'"}, []uint16{needs, noSuchUser}},
	{"load a plugin", []string{"INSTALL SONAME 'ha_connect'"}, []uint16{guardSays}},
	{"load a plugin from elsewhere", []string{"INSTALL PLUGIN x SONAME '../../x.so'"}, []uint16{guardSays, 1124}},
	{"unload the guard", []string{"UNINSTALL PLUGIN kurabe_guard"}, []uint16{guardSays, 1702}},
	{"load a function", []string{"CREATE FUNCTION f RETURNS STRING SONAME 'x.so'"}, []uint16{guardSays, 1126}},
	{"reach another server", []string{"CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'x')"}, []uint16{needs}},
	{"turn the log to a file", []string{"SET GLOBAL general_log_file = '/tmp/x'"}, []uint16{needs}},
	{"turn the slow log to a file", []string{"SET GLOBAL slow_query_log_file = '/tmp/x'"}, []uint16{needs}},
	{"open the file system", []string{"SET GLOBAL secure_file_priv = ''"}, []uint16{readOnly}},
	{"move the guard's socket", []string{"SET GLOBAL kurabe_guard_socket = '/tmp/x'"}, []uint16{readOnly}},
	{"change a setting of the group", []string{"SET GLOBAL innodb_flush_log_at_trx_commit = 0"}, []uint16{needs}},
	{"write without a log", []string{"SET SESSION sql_log_bin = 0"}, []uint16{needs}},
	{"apply row events", []string{"BINLOG 'x'"}, []uint16{needs}},
	{"replicate from anywhere", []string{"CHANGE MASTER TO MASTER_HOST = 'x'"}, []uint16{needs}},
	{"shut down", []string{"SHUTDOWN"}, []uint16{needs}},
	{"stop writing", []string{"SET GLOBAL read_only = 1"}, []uint16{needs}},
}

func TestMasterPermissions(t *testing.T) {
	b := enginetest.NewBed(t, setup(t, enginetest.Reachable(t)))
	b.Satisfy(t)
	db := masterPool(t, b)
	for _, statements := range allowed {
		if err := run(t.Context(), db, statements); err != nil {
			t.Errorf("should be allowed: %v", err)
		}
	}
	for _, c := range denied {
		t.Run(c.name, func(t *testing.T) {
			deny(t, db, c)
			noNewRights(t, b)
		})
	}
	t.Run("nothing is damaged", func(t *testing.T) { intact(t, b) })
}

func deny(t *testing.T, db *sql.DB, c denial) {
	t.Helper()
	err := run(t.Context(), db, c.statements)
	var refused *mysql.MySQLError
	switch {
	case err == nil && c.numbers != nil:
		t.Error("it is allowed")
	case err == nil:
	case !errors.As(err, &refused):
		t.Errorf("not refused but broken: %v", err)
	case !slices.Contains(c.numbers, refused.Number):
		t.Errorf("refused for another reason: %v", err)
	}
}

// noNewRights compares every account with the master user's rights, as they are
// on the disk and, after a reload, in memory.
func noNewRights(t *testing.T, b *enginetest.Bed) {
	t.Helper()
	err := guard.With(t.Context(), b.Instance(), func(a *guard.Session) error {
		rows, err := a.Query(t.Context(), `SELECT g.User FROM mysql.global_priv g, mysql.global_priv m
			WHERE m.User = 'master' AND JSON_VALUE(g.Priv, '$.access') & ~JSON_VALUE(m.Priv, '$.access') <> 0
			OR JSON_VALUE(m.Priv, '$.access') & ((1 << 15) | (1 << 9) | (1 << 7)) <> 0`)
		if err != nil {
			return err
		}
		if len(rows) > 0 {
			return fmt.Errorf("has more rights than the master user: %v", rows)
		}
		return a.Exec(t.Context(), "FLUSH PRIVILEGES")
	})
	if err != nil {
		t.Error(err)
	}
	for _, right := range []string{"SUPER", "FILE", "ALL PRIVILEGES ON *.*"} {
		if grants, err := query(t.Context(), b.Login(), "SHOW GRANTS"); err != nil || strings.Contains(grants, right) {
			t.Errorf("grants of the master user: %s, %v", grants, err)
		}
	}
}

// intact: the accounts are whole, also for a server that starts anew.
func intact(t *testing.T, b *enginetest.Bed) {
	for _, again := range []bool{false, true} {
		if again {
			b.Want.Boot, b.Want.Generation = b.Want.Boot+1, b.Want.Generation+1
			b.Satisfy(t)
		}
		err := guard.With(t.Context(), b.Instance(), func(a *guard.Session) error {
			for _, table := range guard.Guarded {
				rows, err := a.Query(t.Context(), "CHECK TABLE mysql."+table)
				if err != nil || len(rows) != 1 || rows[0][3] != "OK" {
					return fmt.Errorf("%s: %v %w", table, rows, err)
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	b.MustQuery(t, "CREATE OR REPLACE USER after@'%' IDENTIFIED BY 'x'")
}

// The one damage that a master user can still do to the accounts is to empty
// them. It gains nothing, and a new password brings it back.
func TestEmptiedAccounts(t *testing.T) {
	b := enginetest.NewBed(t, setup(t, enginetest.Reachable(t)))
	b.Satisfy(t)
	db := masterPool(t, b)
	err := run(t.Context(), db, []string{"TRUNCATE TABLE mysql.global_priv", "TRUNCATE TABLE mysql.db", "TRUNCATE TABLE mysql.tables_priv", "FLUSH PRIVILEGES"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := query(t.Context(), b.Login(), "SELECT 1"); err == nil {
		t.Error("a server without accounts lets somebody in")
	}
	b.Want.Password.Seq++
	if err := b.Driver.SetPassword(t.Context(), b.Instance()); err != nil {
		t.Fatal(err)
	}
	for _, c := range denied[:16] {
		t.Run(c.name, func(t *testing.T) { deny(t, db, c) })
	}
	noNewRights(t, b)
	intact(t, b)
	b.MustQuery(t, "SELECT User FROM mysql.user")
}

// A table stays in the data folder, whatever it asks for.
func TestDataDirectory(t *testing.T) {
	b := enginetest.NewBed(t, setup(t, enginetest.Reachable(t)))
	b.Satisfy(t)
	elsewhere := filepath.Join(enginetest.Reachable(t), "elsewhere")
	if err := errors.Join(os.Mkdir(elsewhere, 0o700), os.Chmod(elsewhere, 0o777)); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"InnoDB", "MyISAM", "Aria"} {
		// Refused or ignored with a warning, as the server's engines have it.
		_, _ = query(t.Context(), b.Login(), fmt.Sprintf("CREATE TABLE d_%s (a INT) ENGINE=%s DATA DIRECTORY='%s'", kind, kind, elsewhere))
	}
	entries, err := os.ReadDir(elsewhere)
	if err != nil || len(entries) > 0 {
		t.Errorf("files outside of the instance: %v, %v", entries, err)
	}
}

// One takes over the only other account, and has won nothing.
func TestOwnerOfViews(t *testing.T) {
	b := enginetest.NewBed(t, setup(t, enginetest.Reachable(t)))
	b.Satisfy(t)
	db := masterPool(t, b)
	err := run(t.Context(), db, []string{
		"RENAME USER 'mariadb.sys'@'localhost' TO stolen@'%'", "ALTER USER stolen@'%' IDENTIFIED BY 'Stolen-password-1' ACCOUNT UNLOCK PASSWORD EXPIRE NEVER",
	})
	if err != nil {
		t.Fatal(err)
	}
	login := b.Login()
	login.User, login.Password, login.Database = "stolen", "Stolen-password-1", ""
	for _, statement := range []string{
		"DELETE FROM mysql.global_priv", "SELECT 1 INTO OUTFILE '/tmp/kurabe-outfile'", "DROP TRIGGER mysql.kurabe_db_insert",
		"CREATE TRIGGER mysql.x BEFORE INSERT ON mysql.db FOR EACH ROW SET @a = 1", "GRANT SUPER ON *.* TO stolen@'%'",
		"SET SESSION kurabe_guard_kill = 1", "SET GLOBAL max_connections = 10", "DROP PROCEDURE mysql.rds_kill", "CALL mysql.rds_innodb_buffer_pool_dump_now()",
	} {
		if _, err := query(t.Context(), login, statement); err == nil {
			t.Errorf("%s: it is allowed", statement)
		}
	}
	if _, err := query(t.Context(), login, "SELECT 1"); err != nil {
		t.Errorf("the test proves nothing: %v", err)
	}
	for _, c := range denied[:16] {
		t.Run(c.name, func(t *testing.T) {
			if c.numbers != nil {
				// The definer is gone: refused all the same.
				c.numbers = append(slices.Clone(c.numbers), 1449, noSuchUser)
			}
			deny(t, db, c)
			noNewRights(t, b)
		})
	}
	// The procedures have no definer now; a new password brings it back.
	const call = "CALL mysql.rds_innodb_buffer_pool_dump_now()"
	if _, err := query(t.Context(), b.Login(), call); err == nil {
		t.Error("a procedure runs without its definer")
	}
	b.Want.Password.Seq++
	if err := b.Driver.SetPassword(t.Context(), b.Instance()); err != nil {
		t.Fatal(err)
	}
	b.MustQuery(t, call)
}
