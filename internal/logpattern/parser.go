package logpattern

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

var (
	errEmpty = errors.New("a term is empty")
	errDeep  = errors.New("the parentheses are nested too deeply")
	errQuote = errors.New("a quotation mark is not closed")
)

// depthMax bounds parentheses.
const depthMax = 16

// parser reads a pattern; rest is what it has not read.
type parser struct {
	rest, all string
	depth     int
}

func (p *parser) space() { p.rest = strings.TrimLeft(p.rest, " \t\r\n") }

// take reads a text if it is next, after space.
func (p *parser) take(text string) bool {
	p.space()
	rest, ok := strings.CutPrefix(p.rest, text)
	if ok {
		p.rest = rest
	}
	return ok
}

// words reads words in this order, whatever their case, if they are next.
func (p *parser) words(list ...string) bool {
	before := p.rest
	for _, word := range list {
		p.space()
		if len(p.rest) < len(word) || !strings.EqualFold(p.rest[:len(word)], word) || isNameByte(p.rest[len(word):]) {
			p.rest = before
			return false
		}
		p.rest = p.rest[len(word):]
	}
	return true
}

// isNameByte says whether a text begins with a byte of a word.
func isNameByte(text string) bool {
	return text != "" && (text[0] == '_' || text[0] >= '0' && text[0] <= '9' || text[0]|0x20 >= 'a' && text[0]|0x20 <= 'z' || text[0] >= utf8.RuneSelf)
}

// quoted reads a text between quotation marks, in which \ stands before a mark and itself.
func (p *parser) quoted() (string, error) {
	var b strings.Builder
	for n := 1; n < len(p.rest); n++ {
		switch c := p.rest[n]; {
		case c == '"':
			p.rest = p.rest[n+1:]
			return b.String(), nil
		case c == '\\' && n+1 < len(p.rest) && (p.rest[n+1] == '"' || p.rest[n+1] == '\\'):
			n++
			b.WriteByte(p.rest[n])
		default:
			b.WriteByte(c)
		}
	}
	return "", errQuote
}

// word reads a quoted text, or up to one of some bytes.
func (p *parser) word(ends string) (text string, quoted bool, err error) {
	if strings.HasPrefix(p.rest, `"`) {
		text, err = p.quoted()
		return text, true, err
	}
	n := strings.IndexAny(p.rest, ends)
	if n < 0 {
		n = len(p.rest)
	}
	text, p.rest = p.rest[:n], p.rest[n:]
	return text, false, nil
}

// regexp reads an expression between %.
func (p *parser) regexp() (*regexp.Regexp, error) {
	n := strings.IndexByte(p.rest[1:], '%')
	if n < 0 {
		return nil, errors.New("a regular expression is not closed by %")
	}
	re, err := regexp.Compile(p.rest[1 : n+1])
	if err != nil {
		return nil, errors.New("invalid regular expression: " + strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	p.rest = p.rest[n+2:]
	return re, nil
}

func (p *parser) operator() (string, error) {
	for _, op := range operators {
		if p.take(op) {
			return op, nil
		}
	}
	return "", errors.New("one of = != < <= > >= is expected")
}

// value reads what a field is compared with. Words end at one of some bytes.
func (p *parser) value(op, ends string) (v value, err error) {
	p.space()
	if strings.HasPrefix(p.rest, "%") {
		v.glob, err = p.regexp()
		if err == nil && op != "=" && op != "!=" {
			err = errors.New("a regular expression is compared by = or !=")
		}
		return v, err
	}
	text, quoted, err := p.word(ends)
	if err != nil {
		return v, err
	}
	if text == "" && !quoted {
		return v, errors.New("a value is expected")
	}
	v.text, v.glob = text, globbed(text)
	if !quoted {
		v.number, v.numeric = parseNumber(text)
	}
	if op != "=" && op != "!=" && !v.numeric {
		return v, errors.New("< <= > >= compare numbers")
	}
	return v, nil
}

// parseNumber reads a decimal number, with an exponent or without.
func parseNumber(text string) (float64, bool) {
	if text == "" || strings.Trim(text, "0123456789+-.eE") != "" {
		return 0, false
	}
	x, err := strconv.ParseFloat(text, 64)
	return x, err == nil
}

// both and any join conditions.
func both[T any](a, b func(T) bool) func(T) bool { return func(x T) bool { return a(x) && b(x) } }
func any2[T any](a, b func(T) bool) func(T) bool { return func(x T) bool { return a(x) || b(x) } }

// conditions reads conditions joined by && and ||, of which && binds more, with parentheses.
func conditions[T any](p *parser, one func() (func(T) bool, error)) (func(T) bool, error) {
	if p.depth++; p.depth > depthMax {
		return nil, errDeep
	}
	defer func() { p.depth-- }()
	part := func() (func(T) bool, error) {
		if !p.take("(") {
			return one()
		}
		inner, err := conditions(p, one)
		if err == nil && !p.take(")") {
			err = errors.New(") is expected")
		}
		return inner, err
	}
	all, err := joined(p, "&&", both, part)
	for err == nil && p.take("||") {
		var next func(T) bool
		next, err = joined(p, "&&", both, part)
		all = any2(all, next)
	}
	return all, err
}

// joined reads parts between an operator.
func joined[T any](p *parser, op string, join func(a, b func(T) bool) func(T) bool, part func() (func(T) bool, error)) (func(T) bool, error) {
	all, err := part()
	for err == nil && p.take(op) {
		var next func(T) bool
		next, err = part()
		all = join(all, next)
	}
	return all, err
}
