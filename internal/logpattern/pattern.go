package logpattern

import (
	"bytes"
	"regexp"
	"strings"

	"kurabe"
)

// Pattern is a filter pattern. It may be used by many at once.
type Pattern struct {
	match func(message []byte) bool
}

// Match says whether a message has the pattern.
func (p *Pattern) Match(message []byte) bool { return p.match(message) }

// Parse reads a pattern; the empty one matches everything. Its errors are CodeInvalidParameterValue.
func Parse(text string) (*Pattern, error) {
	if len(text) > kurabe.LogPatternBytesMax {
		return nil, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "The filter pattern has %d bytes; %d is the most", len(text), kurabe.LogPatternBytesMax)
	}
	p := &parser{rest: text, all: text}
	var match func([]byte) bool
	var err error
	switch text := strings.TrimSpace(text); {
	case text == "":
		match = func([]byte) bool { return true }
	case text[0] == '{':
		match, err = p.json()
	case text[0] == '[':
		match, err = p.fields()
	default:
		match, err = p.terms()
	}
	if err != nil {
		return nil, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "Invalid filter pattern: %s, at character %d", err.Error(), len(p.all)-len(p.rest)+1)
	}
	return &Pattern{match}, nil
}

// term is a part of a message that is searched for.
type term func(message []byte) bool

// terms reads a pattern of terms. As in CloudWatch, terms with ? count only where there is none
// that must be in the message.
func (p *parser) terms() (func([]byte) bool, error) {
	var must, either, never []term
	for p.space(); p.rest != ""; p.space() {
		list := &must
		switch p.rest[0] {
		case '?':
			list, p.rest = &either, p.rest[1:]
		case '-':
			list, p.rest = &never, p.rest[1:]
		}
		one, err := p.term()
		if err != nil {
			return nil, err
		}
		*list = append(*list, one)
	}
	if len(must) > 0 {
		either = nil
	}
	return func(message []byte) bool {
		for _, t := range never {
			if t(message) {
				return false
			}
		}
		for _, t := range must {
			if !t(message) {
				return false
			}
		}
		for _, t := range either {
			if t(message) {
				return true
			}
		}
		return len(either) == 0
	}, nil
}

func (p *parser) term() (term, error) {
	if strings.HasPrefix(p.rest, "%") {
		re, err := p.regexp()
		if err != nil {
			return nil, err
		}
		return re.Match, nil
	}
	word, _, err := p.word(" \t\r\n")
	if err != nil {
		return nil, err
	}
	if word == "" {
		return nil, errEmpty
	}
	want := []byte(word)
	return func(message []byte) bool { return bytes.Contains(message, want) }, nil
}

// value is what a field is compared with.
type value struct {
	text    string
	number  float64
	numeric bool
	glob    *regexp.Regexp // of a text with *, or given between %
}

// operators, longest first.
var operators = []string{"!=", "<=", ">=", "=", "<", ">"}

// compareNumbers says whether an operator holds.
func compareNumbers(op string, a, b float64) bool {
	switch op {
	case "=":
		return a == b
	case "!=":
		return a != b
	case "<":
		return a < b
	case "<=":
		return a <= b
	case ">":
		return a > b
	}
	return a >= b
}

// isText says whether a text is the value, or has its form.
func (v value) isText(text string) bool {
	if v.glob != nil {
		return v.glob.MatchString(text)
	}
	return text == v.text
}

// globbed makes the expression of a text with *, nil without.
func globbed(text string) *regexp.Regexp {
	if !strings.Contains(text, "*") {
		return nil
	}
	parts := strings.Split(text, "*")
	for n := range parts {
		parts[n] = regexp.QuoteMeta(parts[n])
	}
	re, err := regexp.Compile(`(?s)\A` + strings.Join(parts, ".*") + `\z`)
	if err != nil { // the parser has bounded it
		return nil
	}
	return re
}
