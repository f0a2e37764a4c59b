//go:build integration

package mariadb

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"kurabe/internal/proxy"
)

// TestSessionsAreTheirClients runs programs of session state on several clients, direct and
// through one connection of a proxy, and compares every answer.
func TestSessionsAreTheirClients(t *testing.T) {
	seed := rand.Uint64()
	if v := os.Getenv("SEED"); v != "" {
		seed, _ = strconv.ParseUint(v, 10, 64)
	}
	t.Logf("seed %d", seed)
	b := newBed(t, 1)
	must(t, session(t, database.address.String(), ""), "CREATE OR REPLACE TABLE shop.parent (id INT PRIMARY KEY AUTO_INCREMENT, v INT)", "CREATE OR REPLACE TABLE depot.parent (id INT PRIMARY KEY AUTO_INCREMENT, v INT) AUTO_INCREMENT=1000")
	for round := range 4 {
		chance := rand.New(rand.NewPCG(seed, uint64(round)))
		direct, proxied := clients(t, database.address.String(), 3), clients(t, b.address, 3)
		var open, manual, owed [3]bool // transactions, and warnings that were not asked for
		who := 0
		for step := range 60 {
			statement := statementOf(chance)
			switch {
			case !open[who] && !manual[who]: // a transaction keeps the only connection
				who = chance.IntN(3)
			case chance.IntN(4) == 0:
				statement = "SET autocommit=1"
			case chance.IntN(4) == 0:
				statement = "COMMIT"
			}
			if owed[who] {
				statement = "SHOW WARNINGS"
			}
			owed[who] = strings.Contains(statement, "nonsense") || strings.Contains(statement, "CAST")
			switch statement {
			case "BEGIN", "START TRANSACTION READ ONLY":
				open[who] = true
			case "COMMIT", "ROLLBACK":
				open[who] = false
			case "SET autocommit=0":
				manual[who] = true
			case "SET autocommit=1":
				open[who], manual[who] = open[who] && !manual[who], false
			}
			want := outcome(direct[who], statement)
			got := outcome(proxied[who], statement)
			if got != want {
				t.Fatalf("round %d, step %d, client %d: %s\n direct %s\nproxied %s", round, step, who, statement, want, got)
			}
		}
		for _, db := range append(direct, proxied...) {
			_ = db.Close()
		}
	}
	if n := b.pins(); n != 0 {
		t.Errorf("%d pins", n)
	}
}

func clients(t *testing.T, address string, n int) (all []*sql.DB) {
	for i := range n {
		all = append(all, session(t, address, fmt.Sprintf("interpolateParams=%v&multiStatements=true", i != 1)))
	}
	return all
}

// statementOf draws one that sets, or asks for, state of the session.
func statementOf(r *rand.Rand) string {
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	switch r.IntN(4) {
	case 0:
		return pick("SET sql_mode=''", "SET sql_mode='ANSI,STRICT_TRANS_TABLES'", "SET sql_mode=DEFAULT", "SET NAMES latin1", "SET NAMES utf8mb4",
			"SET NAMES utf8mb4 COLLATE utf8mb4_bin", "SET character_set_results=NULL", "SET time_zone='+05:00'", "SET time_zone='SYSTEM'",
			"SET collation_connection=latin1_german1_ci", "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", "SET tx_isolation='SERIALIZABLE'",
			"SET SESSION TRANSACTION READ ONLY", "SET SESSION TRANSACTION READ WRITE", "SET foreign_key_checks=0", "SET foreign_key_checks=1, sql_select_limit=7",
			"SET sql_select_limit=DEFAULT", "SET group_concat_max_len=100", "SET lc_time_names='de_DE'", "SET wait_timeout=1000", "SET net_write_timeout=77",
			"SET max_statement_time=100.5", "SET optimizer_switch='mrr=on'", "SET sql_auto_is_null=1", "SET auto_increment_increment=3",
			"SET STATEMENT max_statement_time=5 FOR SELECT 1", "SET sql_mode='no such mode'", "SET lc_time_names='fr_FR', sql_mode='nonsense'",
			"SET div_precision_increment=8; SET sql_safe_updates=1", "SET default_storage_engine=Aria", "SET character_set_client=latin1")
	case 1:
		return pick("USE depot", "USE shop", "USE nowhere", "BEGIN", "COMMIT", "ROLLBACK", "SET autocommit=0", "SET autocommit=1", "START TRANSACTION READ ONLY",
			"SAVEPOINT a", "SELECT COUNT(*) >= 0 FROM parent")
	}
	return pick("SELECT @@sql_mode, @@time_zone, @@tx_isolation, @@tx_read_only, DATABASE()",
		"SELECT @@character_set_client, @@character_set_connection, @@character_set_results, @@collation_connection",
		"SELECT @@foreign_key_checks, @@sql_select_limit, @@group_concat_max_len, @@lc_time_names, @@wait_timeout, @@net_write_timeout",
		"SELECT @@max_statement_time, @@optimizer_switch, @@sql_auto_is_null, @@auto_increment_increment, @@autocommit",
		"SELECT @@div_precision_increment, @@sql_safe_updates, @@default_storage_engine, @@insert_id, @@last_insert_id",
		"SELECT DATE_FORMAT('2026-11-29', '%W'), 1/3, \"a\"", "SELECT LAST_INSERT_ID()", "SELECT 1/0", "SELECT CAST('x' AS INT)", "SELECT nonsense",
		"SELECT LAST_INSERT_ID(77)", "DO 1", "SELECT COLLATION('x'), CHARSET('x')")
}

// outcome runs a statement and writes down everything that it gives.
func outcome(db *sql.DB, statement string) string {
	rows, err := db.Query(statement)
	if err != nil {
		return "error: " + err.Error()
	}
	defer rows.Close()
	var b strings.Builder
	for {
		names, _ := rows.Columns()
		fmt.Fprintf(&b, "%q:", names)
		for rows.Next() {
			row := make([]any, len(names))
			for i := range row {
				row[i] = new(sql.NullString)
			}
			if err := rows.Scan(row...); err != nil {
				return "scan: " + err.Error()
			}
			for _, v := range row {
				fmt.Fprintf(&b, " %v", *v.(*sql.NullString))
			}
			b.WriteByte(';')
		}
		if !rows.NextResultSet() {
			break
		}
	}
	if err := rows.Err(); err != nil {
		return b.String() + "error: " + err.Error()
	}
	return b.String()
}

// TestLastInsertIDIsOnesOwn is a fault that other proxies have had: the id of another
// client's row.
func TestLastInsertIDIsOnesOwn(t *testing.T) {
	b := newBed(t, 1)
	one, other := b.open(""), b.open("")
	must(t, one, "CREATE OR REPLACE TABLE numbered (id INT PRIMARY KEY AUTO_INCREMENT, v INT)", "INSERT INTO numbered (v) VALUES (1)")
	must(t, other, "INSERT INTO numbered (v) VALUES (2)")
	if got := value(t, one, "SELECT LAST_INSERT_ID()"); got != "1" {
		t.Errorf("the first client's is %s", got)
	}
	if got := value(t, other, "SELECT LAST_INSERT_ID()"); got != "2" {
		t.Errorf("the second client's is %s", got)
	}
	// A number of one's own is in the answer, and is not LAST_INSERT_ID().
	must(t, one, "INSERT INTO numbered VALUES (50, 3)")
	must(t, other, "INSERT INTO numbered (v) VALUES (4)")
	if got := value(t, one, "SELECT LAST_INSERT_ID()"); got != "1" {
		t.Errorf("the first client's is %s after a number of its own", got)
	}
	if got := value(t, b.open(""), "SELECT LAST_INSERT_ID()"); got != "0" {
		t.Errorf("a new client's is %s", got)
	}
	if n := b.pins(); n != 0 {
		t.Errorf("%d pins", n)
	}
}

// TestWarningsAreOnesOwn is the same of SHOW WARNINGS.
func TestWarningsAreOnesOwn(t *testing.T) {
	b := newBed(t, 1)
	one, other := b.open(""), b.open("")
	if _, err := one.Query("SELECT nonsense"); err == nil {
		t.Fatal("no error")
	}
	must(t, other, "DO 1")
	if got := outcome(other, "SHOW WARNINGS"); strings.Contains(got, "nonsense") {
		t.Errorf("another client's warnings: %s", got)
	}
	if got := outcome(one, "SHOW WARNINGS"); !strings.Contains(got, "nonsense") {
		t.Errorf("the client's own warnings are %s", got)
	}
}

// TestRowCountOfAnotherIsNotTold fails with a reason where the value is gone, and works
// from then on.
func TestRowCountOfAnotherIsNotTold(t *testing.T) {
	b := newBed(t, 2)
	one, other := b.open(""), b.open("")
	must(t, one, "CREATE OR REPLACE TABLE counted (v INT)", "INSERT INTO counted VALUES (1), (2), (3)")
	must(t, other, "INSERT INTO counted VALUES (1)")
	if got := outcome(one, "SELECT ROW_COUNT()"); !strings.Contains(got, "1105") {
		t.Errorf("told %s", got)
	}
	must(t, one, "INSERT INTO counted VALUES (1), (2)")
	must(t, other, "INSERT INTO counted VALUES (1)")
	if got := value(t, one, "SELECT ROW_COUNT()"); got != "2" {
		t.Errorf("told %s", got)
	}
}

// TestPins names each reason, and leaves nothing to the next client.
func TestPins(t *testing.T) {
	for name, c := range map[string]struct {
		statements []string
		reason     proxy.PinReason
		probe      string // is empty for another client
	}{
		"user variable":         {[]string{"SET @a = 1"}, proxy.PinUserVariable, "SELECT @a"},
		"assignment":            {[]string{"SELECT @a := 1"}, proxy.PinUserVariable, "SELECT @a"},
		"into":                  {[]string{"SELECT 1 INTO @a"}, proxy.PinUserVariable, "SELECT @a"},
		"temporary table":       {[]string{"CREATE TEMPORARY TABLE passing (a INT)"}, proxy.PinTemporaryTable, "SELECT a FROM passing"},
		"lock":                  {[]string{"SELECT GET_LOCK('l', 0)"}, proxy.PinAdvisoryLock, "SELECT IS_USED_LOCK('l')"},
		"lock in a comment":     {[]string{"SELECT /*!50000 GET_LOCK('l', 0) */"}, proxy.PinAdvisoryLock, "SELECT IS_USED_LOCK('l')"},
		"locked tables":         {[]string{"CREATE TABLE IF NOT EXISTS locked (a INT)", "LOCK TABLES locked WRITE"}, proxy.PinTableLock, "SELECT NULL FROM locked"},
		"all tables":            {[]string{"FLUSH TABLES WITH READ LOCK"}, proxy.PinTableLock, "DO 1"},
		"prepared by name":      {[]string{"PREPARE p FROM 'SELECT 1'"}, proxy.PinSQLPrepare, "EXECUTE p"},
		"untracked variable":    {[]string{"SET tmp_table_size = 1000000"}, proxy.PinSetting, "SELECT NULLIF(@@tmp_table_size, @@global.tmp_table_size)"},
		"variable of a routine": {[]string{"CREATE OR REPLACE PROCEDURE sets() SET @a = 1", "CALL sets()"}, proxy.PinSetting, "SELECT @a"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, 1)
			db := b.open("")
			for _, statement := range c.statements {
				if got := outcome(db, statement); strings.HasPrefix(got, "error") {
					t.Fatalf("%s: %s", statement, got)
				}
			}
			var pins map[proxy.PinReason]uint64
			b.on(func() { pins = b.frontend.Count().Pins })
			if pins[c.reason] != 1 || len(pins) != 1 {
				t.Errorf("pins: %v", pins)
			}
			_ = db.Close()
			got := outcome(b.open(""), c.probe)
			if i := strings.Index(got, ":"); !strings.HasPrefix(got, "error") && strings.Contains(got[i:], "true") {
				t.Errorf("the next client sees %s", got)
			}
		})
	}
}

// TestExcludedVariablesDoNotPin, and are not seen by the next client either.
func TestExcludedVariablesDoNotPin(t *testing.T) {
	b := newBed(t, 1, func(s *proxy.Settings) { s.ExcludeVariableSets = true })
	one, other := b.open(""), b.open("")
	must(t, one, "SET tmp_table_size = 1000000")
	if got := value(t, other, "SELECT @@tmp_table_size = @@global.tmp_table_size"); got != "1" {
		t.Error("another client sees the variable")
	}
	if n := b.pins(); n != 0 {
		t.Errorf("%d pins", n)
	}
}
