package load

import (
	"fmt"
	"strings"

	"kurabe/lab/study"
)

// kit is a load with its data, complete.
type kit struct {
	name    string
	connect bool // a new connection for each transaction, always
	// transactions are scripts by weight; {table} is the kit's one table and {rows} its
	// rows. The same text runs on all engines, or their figures could not be compared.
	transactions []transaction
	tables       func(w study.Workload) []table
}

type transaction struct {
	weight int
	text   string
}

// fill parses the kit's transactions for a workload.
func (k *kit) fill(g *own) error {
	if k.name == kitWriters && g.Rows == 0 {
		return fmt.Errorf("kit %s: rows is missing; the table is named by it", k.name)
	}
	names := strings.NewReplacer("{table}", rowsTable(g.Workload), "{rows}", fmt.Sprint(rowsOf(g.Workload)))
	for _, t := range k.transactions {
		if err := g.scripts.Add(names.Replace(t.text), t.weight); err != nil {
			return fmt.Errorf("kit %s: %w", k.name, err)
		}
	}
	return nil
}

const kitWriters = "writers"

// kits of the own generator.
var kits = []kit{
	{name: "tpcb-like", transactions: one(tpcbLike), tables: pgbenchTables},
	{name: "simple-update", transactions: one(simpleUpdate), tables: pgbenchTables},
	{name: "select-only", transactions: one(selectOnly), tables: pgbenchTables},
	{name: "point-select", transactions: one(pointSelect), tables: rowsTables},
	{name: "sysbench-like", transactions: one(sysbenchLike()), tables: rowsTables},
	{name: "tpcc-like", transactions: tpccLike(), tables: tpccTables},
	{name: "long-transaction", transactions: one(longTransaction()), tables: rowsTables},
	{name: "connect", transactions: one("SELECT 1;"), tables: noTables, connect: true},
	{name: "select-now", transactions: one("SELECT now();"), tables: noTables},
	{name: kitWriters, transactions: one(writers), tables: rowsTables},
}

func one(text string) []transaction { return []transaction{{1, text}} }

func noTables(study.Workload) []table { return nil }

// The transactions of pgbench, word for word but for COMMIT, which MariaDB does not call
// END.
const (
	tpcbLike = `
\set aid random(1, 100000 * :scale)
\set bid random(1, 1 * :scale)
\set tid random(1, 10 * :scale)
\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
COMMIT;
`
	simpleUpdate = `
\set aid random(1, 100000 * :scale)
\set bid random(1, 1 * :scale)
\set tid random(1, 10 * :scale)
\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
COMMIT;
`
	selectOnly = `
\set aid random(1, 100000 * :scale)
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
`
	pointSelect = `
\set id random(1, {rows})
SELECT c FROM {table} WHERE id = :id;
`
)

// newText is a value for the column c. sysbench makes 119 digits in groups; variables
// here are integers, so the server pads one of ten digits to the same length.
const newText = "lpad(cast(:text as char(10)), 119, '68487932199-96439406143-')"

// writers is the second client of the published ALTER measurement: two updates, and a
// row deleted and inserted again. Deadlocks are possible, are counted, and are part of it.
const writers = `
\set id random(1, {rows})
\set other random(1, {rows})
\set moved random(1, {rows})
\set k random(1, {rows})
\set text random(1000000000, 9999999999)
BEGIN;
UPDATE {table} SET k = k + 1 WHERE id = :id;
UPDATE {table} SET c = ` + newText + ` WHERE id = :other;
DELETE FROM {table} WHERE id = :moved;
INSERT INTO {table} (id, k, c, pad) VALUES (:moved, :k, ` + newText + `, '67847967377-48000963322-62604785301-91415491898-96926520291');
COMMIT;
`

// sysbenchLike is the mix of sysbench's oltp_read_write with its defaults: ten point
// selects, four ranges of a hundred rows, two updates, a row deleted and inserted again.
func sysbenchLike() string {
	var b strings.Builder
	for n := range 10 {
		fmt.Fprintf(&b, "\\set p%d random(1, {rows})\n", n)
	}
	for n := range 4 {
		fmt.Fprintf(&b, "\\set from%d random(1, {rows})\n\\set to%d :from%d + 99\n", n, n, n)
	}
	b.WriteString("\\set id random(1, {rows})\n\\set other random(1, {rows})\n\\set moved random(1, {rows})\n\\set k random(1, {rows})\n")
	b.WriteString("\\set text random(1000000000, 9999999999)\nBEGIN;\n")
	for n := range 10 {
		fmt.Fprintf(&b, "SELECT c FROM {table} WHERE id = :p%d;\n", n)
	}
	b.WriteString("SELECT c FROM {table} WHERE id BETWEEN :from0 AND :to0;\n" +
		"SELECT SUM(k) FROM {table} WHERE id BETWEEN :from1 AND :to1;\n" +
		"SELECT c FROM {table} WHERE id BETWEEN :from2 AND :to2 ORDER BY c;\n" +
		"SELECT DISTINCT c FROM {table} WHERE id BETWEEN :from3 AND :to3 ORDER BY c;\n")
	_, rest, _ := strings.Cut(writers, "BEGIN;\n")
	return b.String() + rest
}

// longSteps and longPause make a transaction of half a second, which keeps its snapshot,
// and its locks on every row that it has written, to the end.
const (
	longSteps = 10
	longPause = 50 // ms
)

func longTransaction() string {
	var b strings.Builder
	// Rows are locked from low to high, each in a range of its own, so that two
	// transactions wait for each other and never in a circle.
	for n := range longSteps {
		fmt.Fprintf(&b, "\\set r%d random({rows} * %d / %d + 1, {rows} * %d / %d)\n", n, n, longSteps, n+1, longSteps)
	}
	b.WriteString("BEGIN;\nSELECT count(*) FROM {table} WHERE id BETWEEN 1 AND 100;\n")
	for n := range longSteps {
		fmt.Fprintf(&b, "UPDATE {table} SET k = k + 1 WHERE id = :r%d;\n\\sleep %d ms\n", n, longPause)
	}
	return b.String() + "COMMIT;\n"
}
