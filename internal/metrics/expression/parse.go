package expression

import (
	"fmt"
	"strconv"
	"strings"
)

// Bounds of one expression. CloudWatch has the length.
const (
	maxLength   = 2048
	maxDepth    = 64
	maxSearches = 10
)

// Error is why an expression cannot be parsed or evaluated, for the user who wrote it.
type Error struct{ Text string }

func (e *Error) Error() string { return e.Text }

func invalid(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

// Environment is what an expression is evaluated over.
type Environment struct {
	From, To int64 // of the request, Unix times in seconds; To is not included
	// Lookup returns the value of an id of the request.
	Lookup func(id string) (Value, error)
	// Metrics returns the metrics of the request whose ids contain part.
	Metrics func(part string) []Series
	// Found returns the series of a search.
	Found func(*Search) []Series
}

// Expression is a parsed expression.
type Expression struct {
	// Searches are to be answered before the evaluation.
	Searches []*Search
	root     node
}

// Eval evaluates the expression. Its own errors are of type *Error, others those of Lookup.
func (x *Expression) Eval(e *Environment) (Value, error) { return x.root.eval(e) }

type node interface {
	eval(*Environment) (Value, error)
}

type (
	number  float64
	text    string // quoted: an argument of METRICS and SEARCH
	id      string
	keyword string // an argument of FILL
	array   []node
	binary  struct {
		op   byte
		a, b node
	}
	search struct{ *Search }
)

const (
	repeat keyword = "REPEAT"
	linear keyword = "LINEAR"
)

func (n number) eval(*Environment) (Value, error) { return Value{Number: float64(n)}, nil }
func (i id) eval(e *Environment) (Value, error)   { return e.Lookup(string(i)) }
func (t text) eval(*Environment) (Value, error) {
	return Value{}, invalid("Unexpected string '%s'", string(t))
}
func (k keyword) eval(*Environment) (Value, error) {
	return Value{}, invalid("Unexpected '%s'", string(k))
}
func (s search) eval(e *Environment) (Value, error) {
	return Value{Kind: Array, Series: e.Found(s.Search)}, nil
}

func (b binary) eval(e *Environment) (Value, error) {
	left, err := b.a.eval(e)
	if err != nil {
		return left, err
	}
	right, err := b.b.eval(e)
	if err != nil {
		return right, err
	}
	return combine(b.op, left, right)
}

func (a array) eval(e *Environment) (Value, error) {
	out := Value{Kind: Array}
	for _, item := range a {
		v, err := item.eval(e)
		if err != nil {
			return v, err
		}
		if v.Kind == Number {
			return v, invalid("An array holds time series, not numbers")
		}
		out.Series = append(out.Series, v.Series...)
	}
	return out, nil
}

// Parse parses an expression. Its errors are of type *Error.
func Parse(source string) (*Expression, error) {
	if len(source) > maxLength {
		return nil, invalid("The expression is longer than %d characters", maxLength)
	}
	if fields := strings.Fields(source); len(fields) > 0 && strings.EqualFold(fields[0], "SELECT") {
		return nil, invalid("Metrics Insights queries are not supported: use SEARCH")
	}
	p := parser{rest: source, out: &Expression{}}
	p.skip()
	root, err := p.binary(0)
	if err == nil && p.rest != "" {
		err = p.unexpected()
	}
	p.out.root = root
	return p.out, err
}

type parser struct {
	rest  string
	depth int
	out   *Expression
}

func (p *parser) skip() { p.rest = strings.TrimLeft(p.rest, " \t\r\n") }

// take consumes one of the characters, if one is next.
func (p *parser) take(chars string) (byte, bool) {
	if p.rest == "" || !strings.Contains(chars, p.rest[:1]) {
		return 0, false
	}
	c := p.rest[0]
	p.rest = p.rest[1:]
	p.skip()
	return c, true
}

func (p *parser) unexpected() error {
	if p.rest == "" {
		return invalid("Unexpected end of the expression")
	}
	return invalid("Unexpected '%.20s'", p.rest)
}

// levels are the operators that associate to the left, the weakest first.
var levels = []string{"+-", "*/"}

func (p *parser) binary(level int) (node, error) {
	if level == len(levels) {
		return p.unary()
	}
	left, err := p.binary(level + 1)
	for err == nil {
		op, ok := p.take(levels[level])
		if !ok {
			break
		}
		var right node
		right, err = p.binary(level + 1)
		left = binary{op, left, right}
	}
	return left, err
}

// unary is a power with signs before it: -2^2 is -4.
func (p *parser) unary() (node, error) {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > maxDepth {
		return nil, invalid("The expression is nested more than %d levels deep", maxDepth)
	}
	if op, ok := p.take("+-"); ok {
		n, err := p.unary()
		return binary{op, number(0), n}, err
	}
	base, err := p.primary()
	if err != nil {
		return nil, err
	}
	if _, ok := p.take("^"); !ok {
		return base, nil
	}
	exponent, err := p.unary() // to the right: 2^3^2 is 2^9
	return binary{'^', base, exponent}, err
}

func (p *parser) primary() (node, error) {
	if _, ok := p.take("("); ok {
		n, err := p.binary(0)
		return n, p.close(")", err)
	}
	if _, ok := p.take("["); ok {
		items, err := p.list("]")
		return array(items), err
	}
	switch c := p.peek(); {
	case c >= '0' && c <= '9' || c == '.':
		return p.number()
	case c == '\'' || c == '"':
		return p.quoted()
	case letter(c):
		return p.name()
	}
	return nil, p.unexpected()
}

func (p *parser) peek() byte {
	if p.rest == "" {
		return 0
	}
	return p.rest[0]
}

func (p *parser) close(bracket string, err error) error {
	if err != nil {
		return err
	}
	if _, ok := p.take(bracket); !ok {
		return p.unexpected()
	}
	return nil
}

// list is what stands between commas up to a bracket.
func (p *parser) list(bracket string) ([]node, error) {
	var items []node
	if _, ok := p.take(bracket); ok {
		return nil, nil
	}
	for {
		item, err := p.binary(0)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
		if _, more := p.take(","); !more {
			return items, p.close(bracket, nil)
		}
	}
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' }

// span returns the length of the beginning of text that has only bytes of a kind.
func span(text string, is func(byte) bool) int {
	n := 0
	for n < len(text) && is(text[n]) {
		n++
	}
	return n
}

func (p *parser) number() (node, error) {
	n := span(p.rest, func(c byte) bool { return c >= '0' && c <= '9' || c == '.' })
	if n < len(p.rest) && p.rest[n]|0x20 == 'e' {
		n++
		if n < len(p.rest) && (p.rest[n] == '+' || p.rest[n] == '-') {
			n++
		}
		n += span(p.rest[n:], func(c byte) bool { return c >= '0' && c <= '9' })
	}
	value, err := strconv.ParseFloat(p.rest[:n], 64)
	if err != nil {
		return nil, invalid("Invalid number '%.40s'", p.rest[:n])
	}
	p.rest = p.rest[n:]
	p.skip()
	return number(value), nil
}

// quoted is a string between quotes of either kind, in which a backslash precedes a quote.
func (p *parser) quoted() (node, error) {
	quote, out := p.rest[0], strings.Builder{}
	for n := 1; n < len(p.rest); n++ {
		switch c := p.rest[n]; {
		case c == quote:
			p.rest = p.rest[n+1:]
			p.skip()
			return text(out.String()), nil
		case c == '\\' && n+1 < len(p.rest):
			n++
			out.WriteByte(p.rest[n])
		default:
			out.WriteByte(c)
		}
	}
	return nil, invalid("Unterminated string")
}

// name is an id, a function with its arguments, or an argument of FILL.
func (p *parser) name() (node, error) {
	n := span(p.rest, func(c byte) bool { return letter(c) || c >= '0' && c <= '9' })
	name := p.rest[:n]
	p.rest = p.rest[n:]
	p.skip()
	if _, ok := p.take("("); !ok {
		if k := keyword(name); k == repeat || k == linear {
			return k, nil
		}
		return id(name), nil
	}
	args, err := p.list(")")
	if err != nil {
		return nil, err
	}
	c := call{name, args}
	if err := c.check(); err != nil {
		return nil, err
	}
	if name != "SEARCH" {
		return c, nil
	}
	return p.search(c)
}

func (p *parser) search(c call) (node, error) {
	s, err := parseSearch(string(c.args[0].(text)))
	if err != nil {
		return nil, err
	}
	s.Stat = string(c.args[1].(text))
	if len(c.args) > 2 {
		seconds, ok := c.args[2].(number)
		if !ok || seconds < 1 || seconds > 1<<31 || seconds != number(int64(seconds)) {
			return nil, invalid("The period of SEARCH is not a number of seconds")
		}
		s.Period = int64(seconds)
	}
	if p.out.Searches = append(p.out.Searches, s); len(p.out.Searches) > maxSearches {
		return nil, invalid("An expression has at most %d searches", maxSearches)
	}
	return search{s}, nil
}
