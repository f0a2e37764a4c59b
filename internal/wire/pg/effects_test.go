package pg

import (
	"slices"
	"strings"
	"testing"
)

var scanCases = []struct {
	name, text string
	marks      Marks
	settings   string
	prepared   string
}{
	{"plain", "SELECT a FROM t WHERE b = 1", 0, "", ""},
	{"words in strings", "SELECT 'nextval(', E'it\\'s nextval', $$ lastval $$, $a$ $$ set_config $a$ -- currval\n", 0, "", ""},
	{"words in comments", "/* nextval /* nested */ lastval */ SELECT 1", 0, "", ""},
	{"set", "SET search_path TO a, b", 0, "search_path", ""},
	{"set session", "set session Work_Mem = '1MB'", 0, "work_mem", ""},
	{"set local", "SET LOCAL search_path = x", 0, "", ""},
	{"set with a dot", "SET my.tenant = 7", 0, "my.tenant", ""},
	{"set quoted", `SET "Search_Path" = x`, 0, "search_path", ""},
	{"set default", "SET work_mem TO DEFAULT", MarkAllSettings, "work_mem", ""},
	{"set time zone", "SET TIME ZONE 'UTC'", MarkAllSettings, "timezone", ""},
	{"set role", "SET ROLE reader", 0, "role", ""},
	{"set session authorization", "SET SESSION AUTHORIZATION x", MarkUntracked, "", ""},
	{"set transaction", "SET TRANSACTION READ ONLY", 0, "", ""},
	{"set characteristics", "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", 0, "default_transaction_isolation,default_transaction_read_only,default_transaction_deferrable", ""},
	{"update is not set", "UPDATE t SET search_path = 1", 0, "", ""},
	{"reset", "RESET search_path", MarkAllSettings, "search_path", ""},
	{"reset with a dot", "RESET my.tenant", MarkAllSettings, "my.tenant", ""},
	{"reset all", "RESET ALL", MarkAllSettings, "", ""},
	{"set_config", "SELECT pg_catalog.set_config('Search_path', 'x', false)", 0, "search_path", ""},
	{"set_config of a column", "SELECT set_config(name, 'x', false) FROM t", MarkAllSettings, "", ""},
	{"set_config of an expression", "SELECT set_config('search' || '_path', 'x', false)", MarkAllSettings, "", ""},
	{"pg_settings", "UPDATE pg_settings SET setting = 1", MarkAllSettings, "", ""},
	{"do", "DO $x$ BEGIN PERFORM 1; PERFORM nextval('s'); END $x$", MarkAllSettings | MarkSequence | MarkBegin | MarkEnd | MarkCommit, "", ""},
	{"temp", "CREATE TEMP TABLE t (a int)", MarkTemporary, "", ""},
	{"temp by schema", "CREATE TABLE IF NOT EXISTS pg_temp.t (a int)", MarkTemporary, "", ""},
	{"temp view", "CREATE OR REPLACE TEMPORARY VIEW v AS SELECT 1", MarkTemporary, "", ""},
	{"temp that ends with the transaction", "CREATE TEMP TABLE t (a int) ON COMMIT DROP", 0, "", ""},
	{"temp that does not", "CREATE TEMP TABLE t (a int) ON COMMIT DELETE ROWS", MarkTemporary, "", ""},
	{"table named temp", "CREATE TABLE x (temp int)", 0, "", ""},
	{"select into", "SELECT 1 INTO TEMP t", MarkTemporary, "", ""},
	{"insert into", "INSERT INTO temporary_things VALUES (1)", 0, "", ""},
	{"cursor", "DECLARE c CURSOR FOR SELECT 1", 0, "", ""},
	{"cursor with hold", "DECLARE c SCROLL CURSOR WITH HOLD FOR SELECT 1", MarkHold, "", ""},
	{"cursor without hold", "DECLARE c CURSOR WITHOUT HOLD FOR SELECT 1", 0, "", ""},
	{"listen", "LISTEN x", MarkListen, "", ""},
	{"load", "LOAD 'auto_explain'", MarkLoad, "", ""},
	{"nextval", "SELECT nextval('s')", MarkSequence, "", ""},
	{"lastval", "SELECT lastval()", MarkSequenceRead, "", ""},
	{"advisory", "SELECT pg_try_advisory_lock(1)", MarkLock, "", ""},
	{"advisory of the transaction", "SELECT pg_advisory_xact_lock(1)", 0, "", ""},
	{"prepare", "PREPARE p AS SELECT 1", MarkPrepare, "", ""},
	{"prepare transaction", "PREPARE TRANSACTION 'x'", MarkEnd | MarkCommit, "", ""},
	{"execute", "EXECUTE p(1)", 0, "", "p"},
	{"explain execute", `EXPLAIN ANALYZE EXECUTE "P q"(1)`, 0, "", `"P q"`},
	{"deallocate", "DEALLOCATE PREPARE p", MarkDeallocate, "", "p"},
	{"deallocate all", "DEALLOCATE ALL", MarkDeallocate, "", ""},
	{"discard", "DISCARD ALL", MarkDiscard, "", ""},
	{"discard plans", "DISCARD PLANS", 0, "", ""},
	{"commit", "COMMIT", MarkEnd | MarkCommit, "", ""},
	{"rollback", "ROLLBACK WORK", MarkEnd, "", ""},
	{"rollback to", "ROLLBACK TO s", 0, "", ""},
	{"rollback work to", "ROLLBACK WORK TO SAVEPOINT s", 0, "", ""},
	{"several", "BEGIN; SET a = 1; SELECT ';'; COMMIT", MarkBegin | MarkEnd | MarkCommit, "a", ""},
	{"open string", "SELECT 'nextval(", 0, "", ""},
	{"parameter", "SELECT $1, nextval($2)", MarkSequence, "", ""},
	{"dollar in a name", "SELECT a$b$c, nextval('x')", MarkSequence, "", ""},
	{"continued escapes", "SELECT E'a'\n'\\' nextval'", 0, "", ""},
}

func TestScan(t *testing.T) {
	for _, c := range scanCases {
		t.Run(c.name, func(t *testing.T) {
			whole := Scan([]byte(c.text), false)
			check := func(how string, e Effects) {
				var prepared []string
				for _, p := range e.Prepared {
					prepared = append(prepared, c.text[p.Start:p.End])
				}
				if e.Marks != c.marks || strings.Join(e.Settings, ",") != c.settings || strings.Join(prepared, ",") != c.prepared {
					t.Errorf("%s: marks %b, want %b; settings %v, prepared %v", how, e.Marks, c.marks, e.Settings, prepared)
				}
			}
			check("whole", whole)
			var s Scanner
			s.Reset(false)
			for i := range len(c.text) {
				s.Feed([]byte(c.text[i : i+1]))
			}
			check("byte by byte", s.End())
		})
	}
}

func TestScanCountsStatements(t *testing.T) {
	for text, want := range map[string]int{"": 0, ";;": 0, "SELECT 1": 1, "SELECT 1;": 1, "BEGIN; SELECT ';' ; COMMIT": 3, "/* x */ -- y": 0} {
		if got := Scan([]byte(text), false).Statements; got != want {
			t.Errorf("%q: %d", text, got)
		}
	}
}

func TestScanWithBackslashes(t *testing.T) {
	text := []byte(`SELECT 'a\' || nextval('`)
	if Scan(text, false).Marks != MarkSequence || Scan(text, true).Marks != 0 {
		t.Error("standard_conforming_strings makes no difference")
	}
}

// FuzzScan: however a text is cut, it says the same, and nothing is out of bounds.
func FuzzScan(f *testing.F) {
	f.Add("SET a.b TO 'x'; SELECT $q$ ; $q$, E'\\'' /* /* */ */ --", 5)
	f.Fuzz(func(t *testing.T, text string, at int) {
		whole := Scan([]byte(text), false)
		if at < 0 || at > len(text) {
			at = len(text) / 2
		}
		var s Scanner
		s.Reset(false)
		s.Feed([]byte(text[:at]))
		s.Feed([]byte(text[at:]))
		cut := s.End()
		if cut.Marks != whole.Marks || cut.Statements != whole.Statements || !slices.Equal(cut.Settings, whole.Settings) || !slices.Equal(cut.Prepared, whole.Prepared) {
			t.Errorf("cut at %d: %+v, whole: %+v", at, cut, whole)
		}
		for _, p := range whole.Prepared {
			_ = text[p.Start:p.End]
		}
	})
}

func BenchmarkScan(b *testing.B) {
	text := []byte("SELECT abalance FROM pgbench_accounts WHERE aid = 1234567;")
	var s Scanner
	b.ReportAllocs()
	for b.Loop() {
		s.Reset(false)
		s.Feed(text)
		if e := s.End(); !e.Nothing() {
			b.Fatal("it leaves something")
		}
	}
}
