package script

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// parser reads one script.
type parser struct {
	*Set
	text     string
	at       int
	line     int
	known    map[string]int // variables that have a value here
	commands []Command
}

// define gives a variable its place. Scripts of one workload share places by name.
func (p *parser) define(name string) error {
	for n, have := range p.Variables {
		if have == name {
			p.known[name] = n
			return nil
		}
	}
	if len(p.Variables) == variablesMax {
		return fmt.Errorf("more than %d variables", variablesMax)
	}
	p.Variables = append(p.Variables, name)
	p.known[name] = len(p.Variables) - 1
	return nil
}

func (p *parser) parse() error {
	for p.skip(); p.at < len(p.text); p.skip() {
		line := p.line
		if len(p.commands) == commandsMax {
			return fmt.Errorf("line %d: more than %d commands", line, commandsMax)
		}
		var c *Command
		var err error
		if p.text[p.at] == '\\' {
			c, err = p.meta()
		} else {
			c, err = p.sql()
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
		if c != nil {
			c.Line = line
			p.commands = append(p.commands, *c)
		}
	}
	return nil
}

// skip passes over space and comment lines between commands.
func (p *parser) skip() {
	for p.at < len(p.text) {
		switch c := p.text[p.at]; {
		case c == '\n':
			p.line++
			p.at++
		case c == ' ' || c == '\t' || c == '\r':
			p.at++
		case strings.HasPrefix(p.text[p.at:], "--"):
			p.at = endOfLine(p.text, p.at)
		default:
			return
		}
	}
}

func endOfLine(text string, from int) int {
	if n := strings.IndexByte(text[from:], '\n'); n >= 0 {
		return from + n
	}
	return len(text)
}

// meta reads a command that begins with a backslash and ends with its line; a backslash
// at the end of a line continues it.
func (p *parser) meta() (*Command, error) {
	start := p.at
	for {
		end := endOfLine(p.text, p.at)
		goesOn := end < len(p.text) && strings.HasSuffix(strings.TrimRight(p.text[p.at:end], "\r"), `\`)
		if p.at = end; !goesOn {
			break
		}
		p.at++
		p.line++
	}
	text := p.text[start:p.at]
	text = strings.NewReplacer("\\\r\n", " ", "\\\n", " ").Replace(text)
	word, rest, _ := strings.Cut(strings.TrimSpace(text[1:]), " ")
	switch word {
	case "set":
		return p.set(rest)
	case "sleep":
		return p.sleep(rest)
	}
	return nil, fmt.Errorf(`\%s: there are \set and \sleep only`, Brief(word))
}

func (p *parser) set(text string) (*Command, error) {
	name, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	if n := nameLength(name); n == 0 || n != len(name) || n > nameMaxBytes {
		return nil, fmt.Errorf(`\set: %q is no name`, Brief(name))
	}
	e, err := p.expression(rest)
	if err != nil {
		return nil, fmt.Errorf(`\set %s: %w`, name, err)
	}
	if err := p.define(name); err != nil {
		return nil, err
	}
	return &Command{Set: e, Target: p.known[name]}, nil
}

var sleepUnits = map[string]time.Duration{"": time.Second, "s": time.Second, "ms": time.Millisecond, "us": time.Microsecond}

func (p *parser) sleep(text string) (*Command, error) {
	text = strings.TrimSpace(text)
	number, unit := text, ""
	if n := strings.LastIndexAny(text, " \t"); n >= 0 {
		number, unit = text[:n], text[n+1:]
	} else if n := strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' }); n > 0 {
		number, unit = text[:n], text[n:]
	}
	step, ok := sleepUnits[unit]
	if !ok {
		return nil, fmt.Errorf(`\sleep: %q is none of us, ms, s`, Brief(unit))
	}
	e, err := p.expression(number)
	if err != nil {
		return nil, fmt.Errorf(`\sleep: %w`, err)
	}
	if e.op != '#' && e.op != ':' {
		return nil, errors.New(`\sleep: it takes a number or a variable`)
	}
	return &Command{Sleep: e, Unit: step}, nil
}

// Brief is a piece of a script short enough for an error.
func Brief(text string) string {
	if runes := []rune(text); len(runes) > errorRunes {
		return string(runes[:errorRunes]) + "…"
	}
	return text
}

// nameLength is how many bytes of the beginning are a name.
func nameLength(text string) int {
	for n := range len(text) {
		c := text[n]
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (n == 0 || c < '0' || c > '9') {
			return n
		}
	}
	return len(text)
}

// expression parses all of the text.
func (p *parser) expression(text string) (*expression, error) {
	x := &expressionParser{text: text, known: p.known}
	e, err := x.sum(0)
	if err != nil {
		return nil, err
	}
	if x.peek() != 0 {
		return nil, fmt.Errorf("%q follows a complete expression", Brief(x.text[x.at:]))
	}
	return e, nil
}

// expressionParser goes down by precedence: sum, product, unary, primary.
type expressionParser struct {
	text  string
	at    int
	known map[string]int
}

// peek is the next character that is no space, 0 at the end.
func (x *expressionParser) peek() byte {
	for x.at < len(x.text) && strings.IndexByte(" \t\r", x.text[x.at]) >= 0 {
		x.at++
	}
	if x.at == len(x.text) {
		return 0
	}
	return x.text[x.at]
}

func (x *expressionParser) sum(depth int) (*expression, error) {
	return x.chain(depth, "+-", x.product)
}

func (x *expressionParser) product(depth int) (*expression, error) {
	return x.chain(depth, "*/%", x.unary)
}

// chain reads operands between operators of one precedence, from the left. A chain's
// length adds to the depth: it is a tree that leans to the left.
func (x *expressionParser) chain(depth int, operators string, operand func(int) (*expression, error)) (*expression, error) {
	left, err := operand(depth + 1)
	for err == nil {
		op := x.peek()
		if op == 0 || strings.IndexByte(operators, op) < 0 {
			return left, nil
		}
		if depth++; depth > expressionDepth {
			return nil, errDepth
		}
		x.at++
		var right *expression
		right, err = operand(depth + 1)
		left = &expression{op: op, left: left, right: right}
	}
	return nil, err
}

var errDepth = fmt.Errorf("it is nested deeper than %d", expressionDepth)

func (x *expressionParser) unary(depth int) (*expression, error) {
	if depth > expressionDepth {
		return nil, errDepth
	}
	switch x.peek() {
	case '-':
		x.at++
		e, err := x.unary(depth + 1)
		return &expression{op: 'n', left: e}, err
	case '+':
		x.at++
		return x.unary(depth + 1)
	}
	return x.primary(depth)
}

func (x *expressionParser) primary(depth int) (*expression, error) {
	c := x.peek()
	rest := x.text[x.at:]
	switch {
	case c == 0:
		return nil, errors.New("the expression ends where a value is due")
	case c == '(':
		x.at++
		e, err := x.sum(depth + 1)
		if err != nil {
			return nil, err
		}
		return e, x.take(')')
	case c >= '0' && c <= '9':
		return x.integer(rest)
	case c == ':':
		n := nameLength(rest[1:])
		place, ok := x.known[rest[1:1+n]]
		if !ok {
			return nil, fmt.Errorf("the variable :%s has no value here; \\set it before", Brief(rest[1:1+n]))
		}
		x.at += 1 + n
		return &expression{op: ':', variable: place}, nil
	case rest[:nameLength(rest)] == "random":
		x.at += len("random")
		return x.random(depth)
	}
	return nil, fmt.Errorf("%q is no integer, no :variable and not random(low, high)", Brief(rest))
}

func (x *expressionParser) integer(rest string) (*expression, error) {
	n := 0
	for n < len(rest) && rest[n] >= '0' && rest[n] <= '9' {
		n++
	}
	v, err := strconv.ParseInt(rest[:n], 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%s is above %d", Brief(rest[:n]), int64(math.MaxInt64))
	}
	x.at += n
	return &expression{op: '#', number: v}, nil
}

func (x *expressionParser) random(depth int) (*expression, error) {
	if err := x.take('('); err != nil {
		return nil, err
	}
	low, err := x.sum(depth + 1)
	if err != nil {
		return nil, err
	}
	if err := x.take(','); err != nil {
		return nil, err
	}
	high, err := x.sum(depth + 1)
	if err != nil {
		return nil, err
	}
	return &expression{op: 'r', left: low, right: high}, x.take(')')
}

func (x *expressionParser) take(want byte) error {
	if x.peek() != want {
		return fmt.Errorf("%q is missing before %q", want, Brief(x.text[x.at:]))
	}
	x.at++
	return nil
}
