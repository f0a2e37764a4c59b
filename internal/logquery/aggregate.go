package logquery

import (
	"math"
	"slices"
)

// aggregate is a function of stats.
type aggregate struct {
	least, most int
	timed       bool // it asks for the time of the row
	grows       bool // its state grows with its values
	add         func(s *state, v value, r *row)
	merge       func(s, o *state)
	result      func(s *state, argument float64) value
}

// aggregation is a stats command.
type aggregation struct {
	keys    []node
	names   []string // of the keys
	aggs    []aggregated
	at      map[string]int // the place of an aggregate in aggs, by its text
	scope   map[string]node
	outputs []output // over a row whose first columns are the keys and aggregates
	columns int
}

type aggregated struct {
	aggregate
	arg      node // nil: count(*)
	argument float64
	slot     int // its column in the rows of outputs
}

// state is what an aggregate knows of the rows of a group. Its fields are those of all functions:
// each uses some.
type state struct {
	Count    int64     `json:"c,omitempty"`
	Sum      float64   `json:"s,omitempty"` // of stddev: the mean
	Squares  float64   `json:"q,omitempty"` // of stddev: the sum of squared distances from the mean
	At       int64     `json:"a,omitempty"` // time of Value
	Value    value     `json:"v,omitzero"`
	Quantile *quantile `json:"p,omitempty"`
	Distinct *distinct `json:"d,omitempty"`
}

// bytes is what a state occupies, about.
func (s *state) bytes() int {
	return stateBytes + len(s.Value.Text) + s.Quantile.bytes() + s.Distinct.bytes()
}

const stateBytes = 120

var aggregates = map[string]aggregate{
	"count": {0, 1, false, false, func(s *state, _ value, _ *row) { s.Count++ }, addCounts,
		func(s *state, _ float64) value { return numberValue(float64(s.Count)) }},
	"count_distinct": {1, 1, false, true, func(s *state, v value, r *row) {
		if s.Distinct == nil {
			s.Distinct = &distinct{}
		}
		s.Distinct.add(hash(r.bytesOf(v)))
	}, func(s, o *state) {
		if s.Distinct == nil {
			s.Distinct = &distinct{}
		}
		s.Distinct.merge(o.Distinct)
	}, func(s *state, _ float64) value { return numberValue(s.Distinct.count()) }},
	"sum": {1, 1, false, false, addNumber, addCounts, func(s *state, _ float64) value { return valueIf(s.Count > 0, numberValue(s.Sum)) }},
	"avg": {1, 1, false, false, addNumber, addCounts, func(s *state, _ float64) value { return numberValue(s.Sum / float64(s.Count)) }},
	"stddev": {1, 1, false, false, addSquare, mergeSquares,
		func(s *state, _ float64) value {
			return valueIf(s.Count > 0, numberValue(math.Sqrt(s.Squares/float64(s.Count))))
		}},
	"min":        keep(func(v, have value, _, _ int64) bool { return v.order(have) < 0 }),
	"max":        keep(func(v, have value, _, _ int64) bool { return v.order(have) > 0 }),
	"sortsfirst": keep(func(v, have value, _, _ int64) bool { return v.order(have) < 0 }),
	"sortslast":  keep(func(v, have value, _, _ int64) bool { return v.order(have) > 0 }),
	"earliest":   timed(keep(func(_, _ value, at, had int64) bool { return at < had })),
	"latest":     timed(keep(func(_, _ value, at, had int64) bool { return at >= had })),
	"pct":        percentile, "percentile": percentile,
	"median": {1, 1, false, true, percentile.add, percentile.merge, func(s *state, _ float64) value { return percentile.result(s, 50) }},
}

func addCounts(s, o *state) {
	s.Count += o.Count
	s.Sum += o.Sum
}

func addNumber(s *state, v value, _ *row) {
	if n, ok := v.num(); ok {
		s.Count++
		s.Sum += n
	}
}

// addSquare is Welford's step: the sum of squares less the square of the sum would lose digits.
func addSquare(s *state, v value, _ *row) {
	if n, ok := v.num(); ok {
		s.Count++
		apart := n - s.Sum
		s.Sum += apart / float64(s.Count)
		s.Squares += apart * (n - s.Sum)
	}
}

func mergeSquares(s, o *state) {
	if o.Count == 0 {
		return
	}
	n, apart := float64(s.Count+o.Count), o.Sum-s.Sum
	s.Squares += o.Squares + apart*apart*float64(s.Count)*float64(o.Count)/n
	s.Sum += apart * float64(o.Count) / n
	s.Count += o.Count
}

// keep keeps one of the values: a later one when better says so.
func keep(better func(v, have value, at, had int64) bool) aggregate {
	put := func(s *state, v value, at int64) {
		if v.Kind == absent || s.Value.Kind != absent && !better(v, s.Value, at, s.At) {
			return
		}
		text := append(s.Value.Text[:0], v.Text...) // the block goes
		s.Value, s.At = v, at
		s.Value.Text = text
	}
	return aggregate{1, 1, false, true, func(s *state, v value, r *row) { put(s, v, r.time) },
		func(s, o *state) { put(s, o.Value, o.At) }, func(s *state, _ float64) value { return s.Value }}
}

func timed(a aggregate) aggregate {
	a.timed = true
	return a
}

var percentile = aggregate{2, 2, false, true, func(s *state, v value, _ *row) {
	if n, ok := v.num(); ok {
		if s.Quantile == nil {
			s.Quantile = &quantile{}
		}
		s.Quantile.add(n)
	}
}, func(s, o *state) {
	if s.Quantile == nil {
		s.Quantile = &quantile{}
	}
	s.Quantile.merge(o.Quantile)
}, func(s *state, p float64) value { return s.Quantile.at(p) }}

// statistics compiles stats and begins the segment of what it leaves.
func (c *compiler) statistics(command *statsCommand) {
	s := &aggregation{at: map[string]int{}, scope: map[string]node{}}
	for _, i := range command.by {
		s.keys, s.names = append(s.keys, c.compile(i.x)), append(s.names, i.name)
	}
	// The rows of outputs have the keys for their first columns, behind them the aggregates.
	s.columns = len(s.keys)
	after := &segment{}
	for n, name := range s.names {
		s.scope[columnKey(name)] = after.column(n, func(*row) {})
		s.outputs = append(s.outputs, output{name, s.scope[columnKey(name)]})
	}
	c.stats = s
	for _, i := range command.items {
		x := c.compile(i.x)
		slot := s.columns
		s.columns++
		s.scope[columnKey(i.name)] = after.column(slot, func(r *row) { r.set(slot, x(r)) })
		s.outputs = append(s.outputs, output{i.name, s.scope[columnKey(i.name)]})
	}
	c.stats = nil
	if len(s.aggs) == 0 {
		fail(command.start, command.end, "stats needs an aggregate function, for example count(*)")
	}
	c.segment.stats = s
	c.program.events = false
	c.shown, c.display, c.single = nil, false, nil
	for _, o := range s.outputs {
		c.show(o.name)
	}
	c.begin(slices.Clone(c.shown))
}

// aggregate compiles a call of an aggregate function in stats.
func (c *compiler) aggregate(x *call, a aggregate) node {
	s := c.stats
	if s == nil {
		fail(x.start, x.end, "%s is an aggregate function: it can stand in stats only, and not in another", x.function)
	}
	key := columnKey(c.query[x.start:x.end])
	slot, have := s.at[key]
	if !have {
		made := aggregated{aggregate: a, slot: c.stats.columns}
		if len(x.args) == 2 {
			p, is := x.args[1].(*number)
			if !is || p.value < 0 || p.value > 100 {
				at := x.args[1].span()
				fail(at.start, at.end, "the percentile must be a number from 0 to 100")
			}
			made.argument = p.value
		}
		if len(x.args) > 0 {
			c.stats = nil
			made.arg = c.compile(x.args[0])
			c.stats = s
		}
		slot = s.columns
		s.at[key] = slot
		s.columns++
		s.aggs = append(s.aggs, made)
	}
	return (&segment{}).column(slot, func(*row) {})
}
