package logquery

import "time"

// node computes the value of an expression for a row.
type node func(*row) value

// row is the event, or the row of a table, that is looked at. Columns are computed when their
// value is asked for, once for each row. Values live until the next row begins.
type row struct {
	time, ingested       int64 // Unix milliseconds
	message, stream, log []byte
	pointer              func() []byte // of events: leads to this one; nil of tables
	tie                  int64
	now                  time.Time
	columns              []value
	stamps               []uint64 // the row of which a column is, by counter
	counter              uint64
	arena                []byte // texts that were made for the row
	args                 []value
	automata             []*automaton
	json                 jsonScan
	matched              [][]byte // of a parse
}

// arenaKept is how much of the memory for texts stays from one row to the next.
const arenaKept = 64 << 10

func newRow(s *segment, now time.Time) *row {
	r := &row{now: now, columns: make([]value, s.columns), stamps: make([]uint64, s.columns), automata: make([]*automaton, s.automata)}
	r.json = jsonScan{paths: s.paths, found: make([]value, len(s.paths)), row: r}
	return r
}

// begin forgets the row before.
func (r *row) begin() {
	r.counter++
	r.args = r.args[:0]
	if cap(r.arena) > arenaKept {
		r.arena = nil
	}
	r.arena = r.arena[:0]
}

// keep appends to the row's memory and returns the part that make appended.
func (r *row) keep(make func([]byte) []byte) []byte {
	from := len(r.arena)
	r.arena = make(r.arena)
	return r.arena[from:len(r.arena):len(r.arena)]
}

// column returns a node that reads a column, which fill computes for each row on demand: it sets
// this column, or several of which this is one.
func (s *segment) column(slot int, fill func(*row)) node {
	return func(r *row) value {
		if r.stamps[slot] != r.counter {
			fill(r)
		}
		return r.columns[slot]
	}
}

func (r *row) set(slot int, v value) {
	r.columns[slot], r.stamps[slot] = v, r.counter
}
