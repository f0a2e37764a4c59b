package target

import (
	"strings"
	"testing"

	"kurabe/lab/study"
)

// confined are statements that have to run without the user's word.
var confined = map[string][]string{
	"": {
		"SELECT 1", "SELECT now()", "INSERT INTO t VALUES ('set global')", "UPDATE mysql_tables SET x = 1", "CREATE INDEX orders_customer ON orders (customer)",
		"CREATE TABLE granted (role text, user_name text, k int)", "SET SESSION x = 1", "DELETE FROM t WHERE a.id = 3", "SELECT o.id FROM orders o JOIN lines l ON l.o = o.id",
		"ALTER TABLE {table} ADD COLUMN added integer NOT NULL DEFAULT 0", "BEGIN", "COMMIT", "(SELECT 1) UNION (SELECT 2)", "EXPLAIN SELECT 1", "ANALYZE", "DROP TABLE IF EXISTS t",
		"WITH x AS (SELECT 1) SELECT * FROM x", "-- a remark\nSELECT 1", "SELECT /* a remark */ 1", "", ";", "START TRANSACTION", "SELECT 1.5 * 2", "TRUNCATE t",
	},
	study.Postgres: {
		"CREATE EXTENSION IF NOT EXISTS pgaudit", "VACUUM ANALYZE t", "CREATE SCHEMA app", "INSERT INTO app.orders (a, b) VALUES (1, 2)", "CREATE TABLE app.orders (id int)",
		"CREATE OR REPLACE FUNCTION lab_takes() RETURNS void LANGUAGE plpgsql AS 'DECLARE until timestamptz := clock_timestamp() + interval ''1 microsecond'' * 20; BEGIN WHILE clock_timestamp() < until LOOP END LOOP; END'",
		"CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO log VALUES (1) ON CONFLICT DO NOTHING; RETURN NEW; END $$",
		"CREATE TRIGGER x AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()", "SELECT pg_sleep(1), pg_relation_size('t')", "COPY t FROM STDIN",
		"SELECT $1::int", "BEGIN; UPDATE t SET n = n + 1; COMMIT", "RESET work_mem", "SELECT generate_series(1, 10)", "EXPLAIN (ANALYZE, BUFFERS) UPDATE t SET n = 1",
		"SELECT count(*) FROM pg_indexes WHERE indexname = 'lab_added'",
	},
	study.MariaDB: {
		"SELECT count(*) FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = DATABASE()", "CREATE TABLE a LIKE b", "REPLACE INTO t VALUES (1)", "RENAME TABLE a TO b",
		"CREATE TRIGGER x BEFORE INSERT ON t FOR EACH ROW SET NEW.a = 1", "SELECT 5 --1", "ALTER TABLE t MODIFY COLUMN k bigint NOT NULL DEFAULT 0", "LOCK TABLES t WRITE",
		"CREATE PROCEDURE p() BEGIN UPDATE t SET n = 1; DELETE FROM u; END",
	},
}

// reaching are statements that have to be refused without it. prod is another database.
var reaching = map[string][]string{
	"": {
		"CREATE ROLE auditor", "GRANT SELECT ON t TO ann", "DROP DATABASE shop", "CALL p()", "DO 1", "EXECUTE x", "PREPARE x FROM 'DROP DATABASE shop'", "nonsense", "'SELECT 1'",
		"SELECT 'no end", "SELECT 1 /* no end", "SELECT 'a\\' ; DROP DATABASE shop; --'", "CREATE USER ann", "KILL 1", "EXPLAIN EXECUTE x",
	},
	study.Postgres: {
		"ALTER SYSTEM SET log_statement = 'all'", "SELECT 1; ALTER SYSTEM SET x = 1", "SELECT pg_reload_conf()", "SELECT pg_catalog.pg_reload_conf()", `SELECT "pg_reload_conf" ()`,
		"SELECT lo_export(1, '/tmp/x')", "SELECT dblink_exec('x', 'y')", "CREATE EXTENSION dblink", "CREATE EXTENSION postgres_fdw", "SELECT cron.schedule('x')", "COPY t TO '/tmp/x'",
		"COPY t FROM PROGRAM 'rm'", "CREATE SERVER s", "CREATE SUBSCRIPTION s", "DO $$ BEGIN END $$", "CREATE FUNCTION f() RETURNS int LANGUAGE c AS 'x'", "COMMENT ON ROLE a IS 'x'",
		"CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'CREATE ROLE x'; END $$", "CREATE FUNCTION f() RETURNS void LANGUAGE sql AS 'CREATE ROLE x'",
		"CREATE FUNCTION f() RETURNS void LANGUAGE sql AS 'SELECT pg_reload_conf()'", "CREATE TABLESPACE t LOCATION '/x'", "SELECT $a$ x", "LOAD 'x'",
		`CREATE FUNCTION f() RETURNS void LANGUAGE sql AS E'\x43REATE ROLE x'`, "SELECT /* /* */ pg_reload_conf() /* */ */ 1", `SELECT U&"pg\005freload_conf"()`, "WITH x AS (SELECT pg_reload_conf()) SELECT 1",
	},
	study.MariaDB: {
		"UPDATE prod.t SET a = 1", "UPDATE `prod`.`t` SET a = 1", "UPDATE Prod . t SET a = 1", `INSERT INTO "prod".t VALUES (1)`, "UPDATE prod.t AS prod SET prod.a = 1", "DELETE a FROM a JOIN prod.t ON 1",
		"SELECT prod.f()", "CREATE VIEW v AS SELECT * FROM prod.t", "ALTER TABLE t RENAME TO prod.t", "USE prod", "set global general_log = 1", "  SET\n GLOBAL general_log = 1", "SET @@global.general_log = 1",
		"ALTER TABLE mysql.general_log ENGINE = MyISAM", "LOAD DATA INFILE 'x' INTO TABLE t", "HANDLER t OPEN", "FLUSH TABLES", "SELECT 1 INTO OUTFILE '/tmp/x'", "BEGIN NOT ATOMIC SET GLOBAL x = 1; END",
		"CREATE TABLE t (a int) ENGINE=FEDERATED CONNECTION='mysql://x'", "CREATE TABLE t (a int) ENGINE='federated'", "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO DELETE FROM t", "RESET MASTER", "START SLAVE",
		"/*!50000 SET GLOBAL x = 1 */", "SELECT /*M! 1 */ 2", "SET STATEMENT max_statement_time = 1 FOR UPDATE t SET a = 1", "SET PASSWORD = 'x'", "EXECUTE IMMEDIATE 'DROP DATABASE shop'", "RENAME USER a TO b",
		"CREATE TRIGGER x BEFORE INSERT ON t FOR EACH ROW SET GLOBAL a = 1", "CREATE PROCEDURE p() SET GLOBAL a = 1", "CREATE SCHEMA app", "LOCK INSTANCE FOR BACKUP", "ANALYZE UPDATE prod.t SET a = 1", "PURGE BINARY LOGS TO 'x'",
	},
}

func TestScope(t *testing.T) {
	for _, engine := range []string{study.Postgres, study.MariaDB, study.MySQL} {
		s := scope{engine: engine, databases: map[string]bool{"prod": true, "mysql": true}}
		own := engine
		if engine == study.MySQL {
			own = study.MariaDB
		} else if engine == study.Postgres {
			s.databases = nil
		}
		for _, text := range append(confined[""], confined[own]...) {
			if why := s.refuses(text); why != "" {
				t.Errorf("%s: %q is refused: %s", engine, text, why)
			}
		}
		for _, text := range append(reaching[""], reaching[own]...) {
			if why := s.refuses(text); why == "" {
				t.Errorf("%s: %q is not refused", engine, text)
			}
		}
	}
}

func TestScopeOfScripts(t *testing.T) {
	for _, engine := range []string{study.Postgres, study.MariaDB} {
		s := scope{engine: engine, split: true}
		for script, refused := range map[string]bool{
			"\\set x random(1, 10)\nSELECT * FROM orders WHERE id = :x;\n\\sleep 1 ms\n": false,
			"BEGIN;\nUPDATE orders SET n = n + 1 WHERE id = :client_id;\nEND;":           false,
			"SELECT 1;\nCALL p();":                                               true,
			"SELECT 1 \\gset\nCALL p();":                                         true,
			"\\set x 1 + \\\n  2\nCALL p();":                                     true,
			"\\set x 1 + \\\n  2\nSELECT 1;":                                     false,
			"CREATE PROCEDURE p() BEGIN UPDATE t SET n = 1; HANDLER t OPEN; END": true,
			"SELECT 1; DO 1":                                                     true,
			strings.Repeat("SELECT 1;\n", 50) + "GRANT ALL ON t TO ann":          true,
		} {
			if why := s.refuses(script); (why != "") != refused {
				t.Errorf("%s: %q: %q", engine, script, why)
			}
		}
	}
}

// Each built-in study has to be judged as it was: what it does is known.
func TestScopeOfBuiltIns(t *testing.T) {
	for _, name := range study.Builtins() {
		b, err := study.Builtin(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, engine := range b.Engines {
			u := &urlTarget{others: map[string]bool{"mysql": true, "prod": true}}
			u.admin.Engine = engine
			for _, v := range b.Variants {
				needs := v.Needs == study.NeedSuperuser // they change mysql's tables
				if why := u.beyondVariant(v); (why != "") != needs {
					t.Errorf("%s, %s: %s: %q", b.Name, engine, v.Name, why)
				}
			}
			for _, w := range b.Workloads {
				if why := u.beyondWorkload(w); why != "" {
					t.Errorf("%s, %s: %s: %s", b.Name, engine, w.Name, why)
				}
			}
		}
	}
}

func TestWordOfTheUser(t *testing.T) {
	u := &urlTarget{others: map[string]bool{"prod": true}}
	u.admin.Engine = study.MariaDB
	w := study.Workload{Script: "UPDATE prod.t SET n = 1", Setup: map[string][]string{"": {"SELECT 1"}}}
	set := study.Workload{Script: "SELECT 1", Setup: map[string][]string{study.MariaDB: {"UPDATE prod.t SET n = 1"}}}
	change := study.Variant{Change: map[string][]string{"": {"DROP TABLE prod.t"}}}
	tool := study.Variant{Tool: study.ToolPtOSC, Change: map[string][]string{"": {"ADD COLUMN x int"}}}
	for name, why := range map[string]string{"script": u.checkWorkload(w), "setup": u.checkWorkload(set), "change": u.beyondVariant(change)} {
		if !strings.Contains(why, "its "+name) || !strings.Contains(why, "database prod") || !strings.Contains(why, "--i-know-this-writes") {
			t.Errorf("%s: %q", name, why)
		}
	}
	if why := u.beyondVariant(tool); why != "" {
		t.Errorf("a tool's part of a statement: %q", why)
	}
	u.options.WritesAllowed = true
	if why := u.checkWorkload(w) + u.checkWorkload(set) + u.beyondVariant(change); why != "" {
		t.Errorf("with the user's word: %q", why)
	}
}

func FuzzScope(f *testing.F) {
	for _, list := range []map[string][]string{confined, reaching} {
		for _, texts := range list {
			for _, text := range texts {
				f.Add(text)
			}
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, engine := range []string{study.Postgres, study.MariaDB} {
			for _, split := range []bool{false, true} {
				s := scope{engine: engine, databases: map[string]bool{"prod": true}, split: split}
				// Whatever comes before it, a statement of its own is seen.
				if s.refuses(text) == "" && (split || engine == study.Postgres) && s.refuses(text+"\n\n;DROP DATABASE shop") == "" {
					t.Errorf("%s: what follows %q is not seen", engine, text)
				}
				writes(engine, text)
			}
		}
	})
}
