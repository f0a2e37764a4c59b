package logquery

import (
	"slices"
	"sync/atomic"
)

// Field is a value of a row of the result.
type Field struct{ Name, Value string }

// Result is the rows of a query. A field that a row has not is not among its fields.
type Result struct {
	Rows       [][]Field
	Statistics Statistics
}

// Finish joins the partial results of all hosts and runs the rest of the program over them. It
// takes them over.
func (p *Program) Finish(parts []*Partial) (result Result, err error) {
	m := p.newMerge()
	for _, part := range parts {
		if err := m.add(part); err != nil {
			return result, err
		}
	}
	result.Statistics = m.stats
	table := m.table()
	for _, s := range p.segments[1:] {
		w := newWorker(s, p, new(atomic.Int64))
		at := slices.Index(s.inputs, fieldTime)
		for n, cells := range table {
			w.row.begin()
			for slot, v := range cells {
				w.row.set(slot, v)
			}
			if w.row.time = 0; at >= 0 {
				w.row.time = int64(cells[at].Number)
			}
			w.row.tie = int64(n)
			if err := w.tableRow(); err != nil {
				return result, err
			}
		}
		table = w.table()
	}
	last := p.segments[len(p.segments)-1]
	for _, cells := range table {
		var fields []Field
		for n, v := range cells {
			if v.Kind != absent {
				fields = append(fields, Field{last.outputs[n].name, string(v.appendText(nil))})
			}
		}
		result.Rows = append(result.Rows, fields)
	}
	return result, nil
}

func (w *worker) tableRow() error {
	for _, f := range w.segment.filters {
		if !f(w.row).holds() {
			return nil
		}
	}
	return w.take(w.row)
}

// table is what a segment leaves: rows of its outputs.
func (w *worker) table() (table [][]value) {
	s := w.segment.stats
	if s == nil {
		for _, k := range w.rows.sorted() {
			table = append(table, k.Cells)
		}
		return table
	}
	groups := make([]*grouped, 0, len(w.groups))
	for _, g := range w.groups {
		groups = append(groups, g)
	}
	slices.SortFunc(groups, func(a, b *grouped) int {
		for n := range a.Keys {
			if c := a.Keys[n].order(b.Keys[n]); c != 0 {
				return c
			}
		}
		return 0
	})
	r := &row{now: w.row.now, columns: make([]value, s.columns), stamps: make([]uint64, s.columns)}
	for _, g := range groups {
		r.begin()
		for n, v := range g.Keys {
			r.set(n, v)
		}
		for n, a := range s.aggs {
			r.set(a.slot, a.result(&g.States[n], a.argument))
		}
		cells := make([]value, len(s.outputs))
		for n, o := range s.outputs {
			cells[n] = owned(o.node(r))
		}
		table = append(table, cells)
	}
	return table
}
