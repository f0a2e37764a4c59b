package logquery

import (
	"slices"
	"strings"
	"time"
)

// Program is a compiled query.
type Program struct {
	segments []*segment // the first is of events, the others of the table that the one before left
	events   bool       // its rows are events: they have @ptr
	now      time.Time
}

// segment is a part of the pipeline that ends with stats, limit or dedup, or with the query.
type segment struct {
	table    bool
	inputs   []string // columns of the table
	filters  []node
	literals literals // of which @message must contain one for the filters to hold
	columns  int
	paths    []string // of JSON fields of events
	pathAt   []int    // their columns
	automata int      // of regular expressions

	stats   *aggregation // nil: rows
	sort    []order
	newest  bool // the order is by time alone, newest first
	limit   int  // 0: all
	dedup   []node
	outputs []output
}

type order struct {
	node
	descending bool
}

type output struct {
	name string
	node
}

// The fields that every event has; @ptr leads to the event.
const (
	fieldTime     = "@timestamp"
	fieldIngested = "@ingestionTime"
	fieldMessage  = "@message"
	fieldStream   = "@logStream"
	fieldLog      = "@log"
	fieldPointer  = "@ptr"
)

// compiler makes the segments. Its errors are mistakes.
type compiler struct {
	query   string
	program *Program
	segment *segment
	scope   map[string]node // the columns that the query has made
	inner   map[string]node // JSON fields, by name
	shown   []string        // names of the columns that are shown, in their order
	display bool            // shown is what display says
	single  []string        // names that a parse has made
	stats   *aggregation    // whose outputs are being compiled
}

// Compile makes a program of a query. Limit is how many rows the query has at most, now is the
// time of its start. Its errors are of type *Error.
func Compile(q *Query, limit int, now time.Time) (p *Program, err error) {
	defer rescue(q.text, &err)
	c := &compiler{query: q.text, program: &Program{events: true, now: now}}
	c.begin(nil)
	for n, command := range q.commands {
		if len(c.segment.dedup) > 0 {
			if _, is := command.(*limitCommand); !is {
				at := command.span()
				fail(at.start, at.end, "only limit can follow dedup")
			}
		}
		c.command(command, q.commands[n+1:])
	}
	c.end(limit, nil)
	return c.program, nil
}

// begin begins a segment, of a table with these columns unless it is the first.
func (c *compiler) begin(inputs []string) {
	s := &segment{table: len(c.program.segments) > 0, newest: len(c.program.segments) == 0, inputs: inputs, columns: len(inputs)}
	c.program.segments = append(c.program.segments, s)
	c.segment, c.scope, c.inner = s, map[string]node{}, map[string]node{}
	for n, name := range inputs {
		c.scope[columnKey(name)] = s.column(n, func(*row) {})
	}
}

// columnKey is the name of a column without its spaces: avg(a - b) is avg(a-b).
func columnKey(name string) string { return strings.Join(strings.Fields(name), "") }

func (c *compiler) command(command command, rest []command) {
	switch command := command.(type) {
	case *fieldsCommand:
		for _, i := range command.items {
			c.define(i)
			if !c.display {
				c.show(i.name)
			}
		}
	case *displayCommand:
		c.shown, c.display = nil, true
		for _, i := range command.items {
			c.define(i)
			c.show(i.name)
		}
	case *filterCommand:
		c.filter(command.condition)
	case *parseCommand:
		c.parse(command)
	case *sortCommand:
		c.segment.sort = nil
		for _, k := range command.keys {
			field, is := k.x.(*name)
			c.segment.newest = is && k.descending && len(command.keys) == 1 && c.isField(field, fieldTime)
			c.segment.sort = append(c.segment.sort, order{c.compile(k.x), k.descending})
		}
	case *dedupCommand:
		for _, i := range command.keys {
			c.segment.dedup = append(c.segment.dedup, c.compile(i.x))
		}
	case *limitCommand:
		if len(rest) > 0 {
			c.end(command.rows, rest)
			return
		}
		c.segment.limit = command.rows
	case *statsCommand:
		c.statistics(command)
	}
}

// show adds a name to those of the result.
func (c *compiler) show(name string) {
	if !slices.Contains(c.shown, name) {
		c.shown = append(c.shown, name)
	}
}

// define gives an expression a name.
func (c *compiler) define(i item) {
	if n, is := i.x.(*name); is && n.name == i.name {
		c.compile(n)
		return
	}
	x := c.compile(i.x)
	slot := c.slot()
	c.scope[columnKey(i.name)] = c.segment.column(slot, func(r *row) { r.set(slot, x(r)) })
}

func (c *compiler) slot() int {
	c.segment.columns++
	return c.segment.columns - 1
}

// filter adds a condition. While no column hides @message, the literals that it demands are
// searched in the block.
func (c *compiler) filter(condition expr) {
	s := c.segment
	s.filters = append(s.filters, c.compile(condition))
	if !s.table {
		s.literals = s.literals.better(c.literals(condition))
	}
}

// literals are texts of which @message must contain one for a condition to hold.
func (c *compiler) literals(x expr) (l literals) {
	isMessage := func(x expr) bool {
		n, is := x.(*name)
		return is && c.isField(n, fieldMessage)
	}
	one := func(text string) literals {
		if text == "" {
			return literals{}
		}
		return literals{list: [][]byte{[]byte(text)}}
	}
	switch x := x.(type) {
	case *group:
		return c.literals(x.x)
	case *binary:
		switch value, is := x.b.(*text); {
		case x.op == "and":
			return c.literals(x.a).better(c.literals(x.b))
		case x.op == "or":
			return c.literals(x.a).either(c.literals(x.b))
		case x.op == "=" && is && isMessage(x.a):
			if _, number := parseNumber([]byte(value.value)); !number {
				return one(value.value)
			}
		}
	case *match:
		switch {
		case x.not || !isMessage(x.x):
		case x.re != nil:
			return regexpLiterals(x.re)
		default:
			return one(x.literal)
		}
	case *call:
		if x.function == "strcontains" && isMessage(x.args[0]) {
			if value, is := x.args[1].(*text); is {
				return one(value.value)
			}
		}
	}
	return literals{}
}

// isField says that a name is a field of events that no column hides.
func (c *compiler) isField(n *name, field string) bool {
	_, hidden := c.scope[columnKey(n.name)]
	return n.name == field && !hidden && !c.segment.table
}

// end ends a segment of rows, and begins that of the commands that follow.
func (c *compiler) end(limit int, rest []command) {
	s := c.segment
	if s.limit == 0 || limit < s.limit {
		s.limit = limit
	}
	if len(c.shown) == 0 {
		c.shown = []string{fieldTime, fieldMessage}
	}
	if !c.display {
		for _, name := range c.single {
			c.show(name)
		}
	}
	c.single = nil
	names := slices.Clone(c.shown)
	if len(rest) > 0 { // what the rest speaks of goes on
		for n := range mentioned(rest) {
			if !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
		slices.Sort(names[len(c.shown):])
	}
	if c.program.events && !slices.Contains(names, fieldPointer) {
		names = append(names, fieldPointer)
	}
	for _, n := range names {
		s.outputs = append(s.outputs, output{n, c.name(&name{name: n})})
	}
	if len(rest) > 0 {
		c.begin(names)
	}
}

// mentioned are the names of fields in commands.
func mentioned(commands []command) map[string]bool {
	names := map[string]bool{}
	add := func(x expr) {
		walk(x, func(x expr) {
			if n, is := x.(*name); is {
				names[n.name] = true
			}
			if f, is := x.(*call); is && f.function == "bin" || is && aggregates[f.function].timed {
				names[fieldTime] = true
			}
		})
	}
	for _, c := range commands {
		switch c := c.(type) {
		case *fieldsCommand:
			for _, i := range c.items {
				add(i.x)
			}
		case *displayCommand:
			for _, i := range c.items {
				add(i.x)
			}
		case *filterCommand:
			add(c.condition)
		case *statsCommand:
			for _, i := range append(slices.Clone(c.items), c.by...) {
				add(i.x)
			}
		case *sortCommand:
			for _, k := range c.keys {
				add(k.x)
			}
		case *parseCommand:
			add(c.from)
		case *dedupCommand:
			for _, i := range c.keys {
				add(i.x)
			}
		}
	}
	return names
}
