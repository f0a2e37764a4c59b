package load

import (
	"math/rand/v2"
	"strconv"
	"strings"

	"kurabe/lab/study"
)

// table is what a kit reads and writes.
type table struct {
	name    string
	columns string // as in CREATE TABLE; {time} is the engine's type of a point in time
	key     string // "" for none
	index   string // columns of a second index, "" for none
	rows    int64
	grows   bool // the load adds rows: it is not counted, and not emptied either
	fill    func(r *row, n int64)
}

// create is the statement that makes it. MariaDB keeps a table in the order of its key,
// so it has it from the beginning; PostgreSQL sorts once at the end.
func (t table) create(engine string) string {
	columns := strings.ReplaceAll(t.columns, "{time}", map[bool]string{true: "timestamp", false: "datetime"}[engine == study.Postgres])
	if engine == study.Postgres {
		return "CREATE TABLE " + t.name + " (" + columns + ")"
	}
	if t.key != "" {
		columns += ", PRIMARY KEY (" + t.key + ")"
	}
	return "CREATE TABLE " + t.name + " (" + columns + ") ENGINE=InnoDB"
}

// finish are the statements after the rows are there.
func (t table) finish(engine string) []string {
	var all []string
	if engine == study.Postgres && t.key != "" {
		all = append(all, "ALTER TABLE "+t.name+" ADD PRIMARY KEY ("+t.key+")")
	}
	if t.index != "" {
		all = append(all, "CREATE INDEX "+t.name+"_"+t.index+" ON "+t.name+" ("+t.index+")")
	}
	if engine == study.Postgres {
		return append(all, "VACUUM ANALYZE "+t.name)
	}
	return append(all, "ANALYZE TABLE "+t.name)
}

// row writes one row as the engine loads it: a line of COPY, or a tuple of INSERT. Texts
// have no character that either would need escaped.
type row struct {
	postgres bool
	buffer   []byte
	begun    bool // this row has a value
	chance   *rand.Rand
}

func newRow(engine string) *row {
	return &row{postgres: engine == study.Postgres, chance: rand.New(rand.NewPCG(dataStream, dataStream))}
}

func (r *row) begin() {
	if !r.postgres {
		if len(r.buffer) > 0 {
			r.buffer = append(r.buffer, ',')
		}
		r.buffer = append(r.buffer, '(')
	}
	r.begun = false
}

func (r *row) end() {
	if r.postgres {
		r.buffer = append(r.buffer, '\n')
	} else {
		r.buffer = append(r.buffer, ')')
	}
}

func (r *row) next() {
	if r.begun {
		r.buffer = append(r.buffer, map[bool]byte{true: '\t', false: ','}[r.postgres])
	}
	r.begun = true
}

func (r *row) integer(v int64) {
	r.next()
	r.buffer = strconv.AppendInt(r.buffer, v, 10)
}

func (r *row) text(v string) {
	r.next()
	r.quote()
	r.buffer = append(r.buffer, v...)
	r.quote()
}

func (r *row) null() {
	r.next()
	if r.postgres {
		r.buffer = append(r.buffer, `\N`...)
	} else {
		r.buffer = append(r.buffer, "NULL"...)
	}
}

func (r *row) quote() {
	if !r.postgres {
		r.buffer = append(r.buffer, '\'')
	}
}

// digits are groups of eleven digits between hyphens, as sysbench has them.
func (r *row) digits(length int) {
	const group = 12
	r.next()
	r.quote()
	for n := range length {
		if n%group == group-1 {
			r.buffer = append(r.buffer, '-')
		} else {
			r.buffer = append(r.buffer, byte('0'+r.chance.IntN(10)))
		}
	}
	r.quote()
}

// pgbenchTables are pgbench's, so that both generators can load the same data.
func pgbenchTables(w study.Workload) []table {
	const accounts, tellers = 100_000, 10
	scale := int64(w.Scale)
	return []table{
		{name: "pgbench_branches", columns: "bid integer NOT NULL, bbalance integer, filler char(88)", key: "bid", rows: scale,
			fill: func(r *row, n int64) { r.integer(n + 1); r.integer(0); r.null() }},
		{name: "pgbench_tellers", columns: "tid integer NOT NULL, bid integer, tbalance integer, filler char(84)", key: "tid", rows: scale * tellers,
			fill: func(r *row, n int64) { r.integer(n + 1); r.integer(n/tellers + 1); r.integer(0); r.null() }},
		{name: "pgbench_accounts", columns: "aid integer NOT NULL, bid integer, abalance integer, filler char(84)", key: "aid", rows: scale * accounts,
			fill: func(r *row, n int64) { r.integer(n + 1); r.integer(n/accounts + 1); r.integer(0); r.text("") }},
		{name: "pgbench_history", columns: "tid integer, bid integer, aid integer, delta integer, mtime {time}, filler char(22)", grows: true},
	}
}

// rowsPerScale of the kits with one table, as sysbench's default.
const rowsPerScale = 10_000

func rowsOf(w study.Workload) int64 {
	if w.Rows > 0 {
		return int64(w.Rows)
	}
	return int64(w.Scale) * rowsPerScale
}

// rowsTable names the one table. That of the writers has its name from the study, which
// changes it meanwhile.
func rowsTable(w study.Workload) string {
	if w.Kit == kitWriters {
		return w.Table()
	}
	return "lab_rows_" + strconv.FormatInt(rowsOf(w), 10)
}

// rowsTables is the table of sysbench.
func rowsTables(w study.Workload) []table {
	rows := rowsOf(w)
	return []table{{name: rowsTable(w), columns: "id integer NOT NULL, k integer NOT NULL DEFAULT 0, c char(120) NOT NULL DEFAULT '', pad char(60) NOT NULL DEFAULT ''",
		key: "id", index: "k", rows: rows,
		fill: func(r *row, n int64) {
			r.integer(n + 1)
			r.integer(1 + r.chance.Int64N(rows))
			r.digits(119)
			r.digits(59)
		}}}
}
