package logquery

import (
	"bytes"
	"math"
	"regexp"
	"slices"
	"strings"
)

// compile makes a node of an expression.
func (c *compiler) compile(x expr) node {
	if made := c.made(x); made != nil {
		return made
	}
	switch x := x.(type) {
	case *number:
		v := numberValue(x.value)
		return func(*row) value { return v }
	case *text:
		v := textValue([]byte(x.value))
		return func(*row) value { return v }
	case *truth:
		v := truthValue(x.value)
		return func(*row) value { return v }
	case *name:
		return c.name(x)
	case *group:
		return c.compile(x.x)
	case *negation:
		return c.negation(x)
	case *binary:
		return c.binary(x)
	case *match:
		return c.match(x)
	case *member:
		return c.member(x)
	}
	return c.call(x.(*call))
}

// made is the column of a table that has an expression's text for a name, as bin(5m) after stats.
func (c *compiler) made(x expr) node {
	key := columnKey(c.query[x.span().start:x.span().end])
	switch {
	case c.stats != nil:
		return c.stats.scope[key]
	case c.segment.table:
		return c.scope[key]
	}
	return nil
}

// name finds a column of the query, a field that every event has, or a JSON field.
func (c *compiler) name(n *name) node {
	if c.stats != nil {
		if made, ok := c.stats.scope[columnKey(n.name)]; ok {
			return made
		}
		fail(n.start, n.end, "%s is neither aggregated nor in by", n.name)
	}
	if made, ok := c.scope[columnKey(n.name)]; ok {
		return made
	}
	// of what jsonParse has made
	for end := strings.LastIndexByte(n.name, '.'); end > 0; end = strings.LastIndexByte(n.name[:end], '.') {
		if made, ok := c.scope[columnKey(n.name[:end])]; ok {
			return c.inside(made, n.name[end+1:])
		}
	}
	if c.segment.table {
		return func(*row) value { return value{} }
	}
	switch n.name {
	case fieldTime:
		return func(r *row) value { return timeValue(r.time) }
	case fieldIngested:
		return func(r *row) value { return timeValue(r.ingested) }
	case fieldMessage:
		return func(r *row) value { return textValue(r.message) }
	case fieldStream:
		return func(r *row) value { return textValue(r.stream) }
	case fieldLog:
		return func(r *row) value { return textValue(r.log) }
	case fieldPointer:
		return func(r *row) value { return textValue(r.pointer()) }
	}
	return c.jsonField(n)
}

// jsonField finds a field in the JSON of events. The first that is asked for reads all of them.
func (c *compiler) jsonField(n *name) node {
	if have, ok := c.inner[n.name]; ok {
		return have
	}
	s := c.segment
	if len(s.paths) == namesMax {
		fail(n.start, n.end, "the query names more than %d fields", namesMax)
	}
	s.paths, s.pathAt = append(s.paths, n.name), append(s.pathAt, c.slot())
	c.inner[n.name] = s.column(s.columns-1, func(r *row) {
		clear(r.json.found)
		if at := jsonStart(r.message); at >= 0 {
			r.json.find(r.message[at:])
		}
		for n, slot := range s.pathAt {
			r.set(slot, r.json.found[n])
		}
	})
	return c.inner[n.name]
}

// inside finds a path in the JSON that a column holds.
func (c *compiler) inside(column node, path string) node {
	scan := func(r *row) value {
		s := jsonScan{paths: []string{path}, found: make([]value, 1), row: r}
		s.find(r.bytesOf(column(r)))
		return s.found[0]
	}
	slot := c.slot()
	return c.segment.column(slot, func(r *row) { r.set(slot, scan(r)) })
}

func (c *compiler) negation(x *negation) node {
	a := c.compile(x.x)
	if x.not {
		return func(r *row) value { return truthValue(!a(r).holds()) }
	}
	return func(r *row) value {
		n, ok := a(r).num()
		return valueIf(ok, numberValue(-n))
	}
}

var arithmetic = map[string]func(a, b float64) float64{
	"+": func(a, b float64) float64 { return a + b },
	"-": func(a, b float64) float64 { return a - b },
	"*": func(a, b float64) float64 { return a * b },
	"/": func(a, b float64) float64 { return a / b },
	"%": math.Mod,
	"^": math.Pow,
}

// comparisons say whether one holds for the order of its sides.
var comparisons = map[string]func(order int) bool{
	"=":  func(o int) bool { return o == 0 },
	"!=": func(o int) bool { return o != 0 },
	"<":  func(o int) bool { return o < 0 },
	"<=": func(o int) bool { return o <= 0 },
	">":  func(o int) bool { return o > 0 },
	">=": func(o int) bool { return o >= 0 },
}

func (c *compiler) binary(x *binary) node {
	a, b := c.compile(x.a), c.compile(x.b)
	switch x.op {
	case "and":
		return func(r *row) value { return truthValue(a(r).holds() && b(r).holds()) }
	case "or":
		return func(r *row) value { return truthValue(a(r).holds() || b(r).holds()) }
	}
	if compute, is := arithmetic[x.op]; is {
		return func(r *row) value {
			n, okA := a(r).num()
			m, okB := b(r).num()
			return valueIf(okA && okB, numberValue(compute(n, m)))
		}
	}
	compare := comparisons[x.op]
	return func(r *row) value {
		v, w := a(r), b(r)
		return truthValue(v.Kind != absent && w.Kind != absent && compare(r.compare(v, w)))
	}
}

func (c *compiler) match(x *match) node {
	a, is := c.compile(x.x), c.matcher(x.pattern)
	return func(r *row) value {
		v := a(r)
		return truthValue(v.Kind != absent && is(r, r.bytesOf(v)) != x.not)
	}
}

// matcher returns the test of a pattern; the literals of a regular expression are tried first.
func (c *compiler) matcher(p pattern) func(*row, []byte) bool {
	if p.re == nil {
		literal := []byte(p.literal)
		return func(_ *row, text []byte) bool { return bytes.Contains(text, literal) }
	}
	need, classes := regexpLiterals(p.re), classesOf(p.re)
	if classes == nil {
		return func(_ *row, text []byte) bool { return need.mayContain(text) && p.re.Match(text) }
	}
	s := c.segment
	n := s.automata
	s.automata++
	return func(r *row, text []byte) bool {
		if !need.mayContain(text) {
			return false
		}
		if r.automata[n] == nil {
			r.automata[n] = newAutomaton(p.re, classes)
		}
		return r.automata[n].match(text)
	}
}

func (c *compiler) member(x *member) node {
	a := c.compile(x.x)
	var list []node
	for _, one := range x.list {
		list = append(list, c.compile(one))
	}
	return func(r *row) value {
		v := a(r)
		if v.Kind == absent {
			return truthValue(false)
		}
		in := slices.ContainsFunc(list, func(n node) bool {
			w := n(r)
			return w.Kind != absent && r.compare(v, w) == 0
		})
		return truthValue(in != x.not)
	}
}

func (c *compiler) call(x *call) node {
	if a, is := aggregates[x.function]; is {
		return c.aggregate(x, a)
	}
	f := functions[x.function]
	var args []node
	for _, one := range x.args {
		args = append(args, c.compile(one))
	}
	if x.function == "bin" {
		args = []node{c.name(&name{x.pos, fieldTime})}
		f = functions["datefloor"]
	}
	checked := !takesAbsent[x.function]
	return func(r *row) value {
		from := len(r.args)
		defer func() { r.args = r.args[:from] }()
		for _, one := range args {
			v := one(r)
			if checked && v.Kind == absent {
				return value{}
			}
			r.args = append(r.args, v)
		}
		return f.eval(r, r.args[from:], x.period)
	}
}

// parse makes columns of the parts of a text.
func (c *compiler) parse(p *parseCommand) {
	from := c.compile(p.from)
	first := c.segment.columns
	count := len(p.names)
	var split func(r *row, text []byte) bool // into r.matched
	if p.re != nil {
		split = c.regexpParts(p.re, p.names)
	} else {
		split = globParts(p.glob)
	}
	fill := func(r *row) {
		v := from(r) // which may be of a parse itself
		r.matched = append(r.matched[:0], make([][]byte, count)...)
		ok := v.Kind != absent && split(r, r.bytesOf(v))
		for n := range count {
			r.set(first+n, valueIf(ok && r.matched[n] != nil, textValue(r.matched[n])))
		}
	}
	for _, n := range p.names {
		c.scope[columnKey(n)] = c.segment.column(c.slot(), fill)
		if !c.display {
			c.single = append(c.single, n)
		}
	}
}

func (c *compiler) regexpParts(re *regexp.Regexp, names []string) func(*row, []byte) bool {
	matches := c.matcher(pattern{re: re})
	var at []int
	for _, n := range names {
		at = append(at, re.SubexpIndex(n))
	}
	return func(r *row, text []byte) bool {
		if !matches(r, text) {
			return false
		}
		places := re.FindSubmatchIndex(text)
		for n, group := range at {
			if places != nil && places[2*group] >= 0 {
				r.matched[n] = text[places[2*group]:places[2*group+1]]
			}
		}
		return places != nil
	}
}

// globParts finds the literals one behind the other; a wildcard is what lies between, the first
// and the last reach to the ends of the text when no literal bounds them.
func globParts(literals []string) func(*row, []byte) bool {
	return func(r *row, text []byte) bool {
		at := bytes.Index(text, []byte(literals[0]))
		if at < 0 {
			return false
		}
		at += len(literals[0])
		for n, literal := range literals[1:] {
			end := len(text) - at
			if literal != "" {
				end = bytes.Index(text[at:], []byte(literal))
			} else if n < len(literals)-2 {
				end = 0 // two wildcards side by side: the first is empty
			}
			if end < 0 {
				return false
			}
			r.matched[n] = text[at : at+end]
			at += end + len(literal)
		}
		return true
	}
}
