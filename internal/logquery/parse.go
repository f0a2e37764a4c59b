package logquery

import (
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds of a query.
const (
	queryCharsMax   = 10_000 // CloudWatch's
	depthMax        = 64     // of nested expressions
	commandsMax     = 64
	namesMax        = 200 // of one command
	patternBytesMax = 2000
	rowsMax         = 10_000 // CloudWatch's
)

// Query is a parsed query.
type Query struct {
	text     string
	commands []command
}

// Parse reads a query. Its errors are of type *Error.
func Parse(query string) (q *Query, err error) {
	if utf8.RuneCountInString(query) > queryCharsMax {
		return nil, &Error{"the query is longer than 10000 characters", queryCharsMax, queryCharsMax}
	}
	defer rescue(query, &err)
	p := &parser{lexer: lexer{query: query}}
	p.advance(0)
	q = &Query{text: query}
	for {
		q.commands = append(q.commands, p.command())
		if p.next.kind == tokenEnd {
			return q, nil
		}
		if !p.next.is("|") {
			p.unexpected("| or the end of the query")
		}
		if len(q.commands) == commandsMax {
			fail(p.next.start, p.next.end, "the query has more than %d commands", commandsMax)
		}
		p.take()
	}
}

// rescue turns a mistake that ended the parsing or compiling into the error.
func rescue(query string, err *error) {
	if r := recover(); r != nil {
		m, ours := r.(mistake)
		if !ours {
			panic(r)
		}
		*err = m.at(query)
	}
}

type parser struct {
	lexer
	depth int
}

func (p *parser) unexpected(want string) {
	what := "the end of the query"
	if t := p.next; t.kind != tokenEnd {
		what = p.query[t.start:t.end]
	}
	fail(p.next.start, p.next.end, "unexpected %s: expected %s", what, want)
}

func (p *parser) expect(symbol string) {
	if !p.next.is(symbol) {
		p.unexpected(symbol)
	}
	p.take()
}

func (p *parser) accept(symbol string) bool {
	if p.next.is(symbol) {
		p.take()
		return true
	}
	return false
}

func (p *parser) acceptWord(word string) bool {
	if p.next.word(word) {
		p.take()
		return true
	}
	return false
}

// from is the place from an offset to the token before the next.
func (p *parser) from(start int) pos { return pos{start, p.last} }

// notOffered are CloudWatch's commands that Kurabe does not have.
var notOffered = []string{"unnest", "lookup", "join", "pattern", "anomaly", "diff", "unmask", "filterindex", "source", "addtotals", "makeresults"}

func (p *parser) command() command {
	t := p.next
	if t.kind != tokenName || t.quoted {
		p.unexpected("a command: fields, display, filter, stats, sort, limit, parse or dedup")
	}
	word := strings.ToLower(t.text)
	for _, n := range notOffered {
		if word == n {
			fail(t.start, t.end, "the command %s is not offered by this version of Kurabe", t.text)
		}
	}
	p.take()
	switch word {
	case "fields":
		return &fieldsCommand{items: p.items(), pos: p.from(t.start)}
	case "display":
		return &displayCommand{items: p.items(), pos: p.from(t.start)}
	case "filter":
		return &filterCommand{condition: p.expression(), pos: p.from(t.start)}
	case "stats":
		c := &statsCommand{items: p.items()}
		if p.acceptWord("by") {
			c.by = p.items()
		}
		c.pos = p.from(t.start)
		return c
	case "sort":
		return &sortCommand{keys: p.sortKeys(), pos: p.from(t.start)}
	case "limit":
		n, err := strconv.Atoi(p.next.text)
		if p.next.kind != tokenNumber || err != nil || n < 1 || n > rowsMax {
			p.unexpected("a whole number from 1 to 10000")
		}
		p.take()
		return &limitCommand{rows: n, pos: p.from(t.start)}
	case "parse":
		return p.parseCommand(t.start)
	case "dedup":
		return &dedupCommand{keys: p.items(), pos: p.from(t.start)}
	}
	fail(t.start, t.end, "unknown command %s: expected fields, display, filter, stats, sort, limit, parse or dedup", t.text)
	return nil
}

// items reads expressions with names, separated by commas.
func (p *parser) items() (list []item) {
	for {
		x := p.expression()
		i := item{x, p.name(x)}
		if p.acceptWord("as") {
			i.name = p.newName()
		}
		list = append(list, i)
		if len(list) > namesMax {
			fail(x.span().start, x.span().end, "the command has more than %d names", namesMax)
		}
		if !p.accept(",") {
			return list
		}
	}
}

// name is how an expression without a name is shown.
func (p *parser) name(x expr) string {
	if n, ok := x.(*name); ok {
		return n.name
	}
	s := x.span()
	return strings.Join(strings.Fields(p.query[s.start:s.end]), " ")
}

func (p *parser) newName() string {
	if p.next.kind != tokenName {
		p.unexpected("a name")
	}
	return p.take().text
}

func (p *parser) sortKeys() (keys []sortKey) {
	for {
		k := sortKey{x: p.expression()}
		if p.acceptWord("as") {
			p.newName()
		}
		if !p.acceptWord("asc") {
			k.descending = p.acceptWord("desc")
		}
		if keys = append(keys, k); len(keys) > namesMax {
			p.unexpected("|")
		}
		if !p.accept(",") {
			return keys
		}
	}
}

func (p *parser) parseCommand(start int) command {
	c := &parseCommand{}
	if p.next.kind == tokenName {
		t := p.take()
		c.from = &name{pos{t.start, t.end}, t.text}
	} else {
		c.from = &name{pos{start, p.last}, "@message"}
	}
	source, from, to, isRegexp := p.regexp()
	if isRegexp {
		c.re = compileRegexp(source, from, to)
		for _, n := range c.re.SubexpNames()[1:] {
			if n != "" {
				c.names = append(c.names, n)
			}
		}
		if len(c.names) == 0 {
			fail(from, to, "the regular expression names no field; write (?<name>...)")
		}
	} else {
		if p.next.kind != tokenText {
			p.unexpected("a text with wildcards in quotes, or a regular expression between slashes")
		}
		t := p.take()
		from, to = t.start, t.end
		c.glob = strings.Split(t.text, "*")
		if len(c.glob) == 1 || len(t.text) > patternBytesMax {
			fail(from, to, "the pattern needs at least one wildcard * and at most %d characters", patternBytesMax)
		}
	}
	if p.acceptWord("as") {
		if isRegexp {
			fail(from, to, "the names of a regular expression's fields stand in it: (?<name>...)")
		}
		c.names = append(c.names, p.newName())
		for p.accept(",") {
			c.names = append(c.names, p.newName())
		}
	}
	if !isRegexp && len(c.names) != len(c.glob)-1 {
		fail(from, to, "the pattern has %d wildcards, but %d names follow", len(c.glob)-1, len(c.names))
	}
	if len(c.names) > namesMax {
		fail(from, to, "the command has more than %d names", namesMax)
	}
	c.pos = p.from(start)
	return c
}

// compileRegexp compiles a pattern that stands at a place of the query.
func compileRegexp(source string, start, end int) *regexp.Regexp {
	if len(source) > patternBytesMax {
		fail(start, end, "the regular expression is longer than %d bytes", patternBytesMax)
	}
	re, err := regexp.Compile(source)
	if err == nil {
		return re
	}
	reason := err.Error()
	if e, ok := err.(*syntax.Error); ok {
		reason = e.Code.String() + ": " + e.Expr
		if e.Code == syntax.ErrInvalidPerlOp || e.Code == syntax.ErrInvalidEscape {
			reason += "; regular expressions are those of RE2, without lookaround and backreferences"
		}
	}
	fail(start, end, "the regular expression is invalid: %s", reason)
	return nil
}
