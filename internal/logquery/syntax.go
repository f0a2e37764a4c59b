package logquery

import "regexp"

// pos is where something stands in the query, in bytes.
type pos struct{ start, end int }

func (p pos) span() pos { return p }

// expr is an expression: number, text, truth, name, group, call, negation, binary, match or member.
type expr interface{ span() pos }

type (
	number struct {
		pos
		value float64
	}
	text struct {
		pos
		value string
	}
	truth struct {
		pos
		value bool
	}
	name struct {
		pos
		name string
	}
	group struct { // in parentheses
		pos
		x expr
	}
	call struct {
		pos
		function string // in lower case
		args     []expr
		star     bool   // count(*)
		period   period // of bin, datefloor and dateceil
	}
	// negation is -x or not x.
	negation struct {
		pos
		not bool
		x   expr
	}
	// binary has the operators + - * / ^ % = != < <= > >= and or.
	binary struct {
		pos
		op   string
		a, b expr
	}
	// match is like and =~.
	match struct {
		pos
		x   expr
		not bool
		pattern
	}
	// member is in.
	member struct {
		pos
		x    expr
		not  bool
		list []expr
	}
)

// pattern is what a text is compared with: a literal that it contains, or a regular expression.
type pattern struct {
	literal string
	re      *regexp.Regexp
}

// item is an expression with its name in results.
type item struct {
	x    expr
	name string
}

// The commands.
type (
	command interface{ span() pos }

	fieldsCommand struct {
		pos
		items []item
	}
	displayCommand struct {
		pos
		items []item
	}
	filterCommand struct {
		pos
		condition expr
	}
	statsCommand struct {
		pos
		items, by []item
	}
	sortCommand struct {
		pos
		keys []sortKey
	}
	limitCommand struct {
		pos
		rows int
	}
	parseCommand struct {
		pos
		from  expr
		glob  []string // the literals around the wildcards
		re    *regexp.Regexp
		names []string
	}
	dedupCommand struct {
		pos
		keys []item
	}
)

type sortKey struct {
	x          expr
	descending bool
}

// walk calls visit for an expression and all below it.
func walk(x expr, visit func(expr)) {
	visit(x)
	switch x := x.(type) {
	case *group:
		walk(x.x, visit)
	case *call:
		for _, a := range x.args {
			walk(a, visit)
		}
	case *negation:
		walk(x.x, visit)
	case *binary:
		walk(x.a, visit)
		walk(x.b, visit)
	case *match:
		walk(x.x, visit)
	case *member:
		walk(x.x, visit)
		for _, a := range x.list {
			walk(a, visit)
		}
	}
}
