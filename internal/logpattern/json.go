package logpattern

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

// json reads { … }, a pattern of messages that are JSON.
func (p *parser) json() (func([]byte) bool, error) {
	p.take("{")
	match, err := conditions(p, p.selection)
	switch {
	case err != nil:
		return nil, err
	case !p.take("}"):
		return nil, errors.New("} is expected")
	case strings.TrimSpace(p.rest) != "":
		return nil, errors.New("something follows the }")
	}
	return func(message []byte) bool {
		text := bytes.TrimSpace(message)
		if len(text) == 0 || text[0] != '{' && text[0] != '[' {
			return false
		}
		var document any
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		return d.Decode(&document) == nil && match(document)
	}, nil
}

// step is a part of a selector: a member, or an element when name is "".
type step struct {
	name  string
	index int // -1: all elements
}

// selection reads a condition on what a selector leads to.
func (p *parser) selection() (func(any) bool, error) {
	path, err := p.selector()
	if err != nil {
		return nil, err
	}
	test := func(holds func(any) bool) func(any) bool {
		return func(document any) bool { return leads(document, path, holds) }
	}
	switch {
	case p.words("IS", "NULL"):
		return test(func(x any) bool { return x == nil }), nil
	case p.words("IS", "TRUE"):
		return test(func(x any) bool { return x == true }), nil
	case p.words("IS", "FALSE"):
		return test(func(x any) bool { return x == false }), nil
	case p.words("NOT", "EXISTS"):
		exists := test(func(any) bool { return true })
		return func(document any) bool { return !exists(document) }, nil
	case p.words("EXISTS"):
		return test(func(any) bool { return true }), nil
	}
	op, err := p.operator()
	if err != nil {
		return nil, err
	}
	v, err := p.value(op, " \t\r\n&|(){}")
	return test(func(x any) bool { return holds(x, op, v) }), err
}

// holds compares a leaf of a document. An object, a list and null are equal to nothing and
// different from nothing.
func holds(x any, op string, v value) bool {
	switch x := x.(type) {
	case json.Number:
		if n, err := x.Float64(); v.numeric && err == nil {
			return compareNumbers(op, n, v.number)
		}
		return (op == "=" || op == "!=") && v.isText(x.String()) == (op == "=")
	case string:
		if n, numeric := parseNumber(x); numeric && v.numeric && op != "=" && op != "!=" {
			return compareNumbers(op, n, v.number)
		}
		return (op == "=" || op == "!=") && v.isText(x) == (op == "=")
	case bool:
		return (op == "=" || op == "!=") && v.isText(strconv.FormatBool(x)) == (op == "=")
	}
	return false
}

// selector reads $.a.b[0]["c d"].
func (p *parser) selector() (path []step, err error) {
	if !p.take("$") {
		return nil, errors.New("a selector, which begins with $, is expected")
	}
	for {
		switch {
		case strings.HasPrefix(p.rest, "."):
			p.rest = p.rest[1:]
			if strings.HasPrefix(p.rest, "[") {
				continue
			}
			n := strings.IndexAny(p.rest, " \t\r\n.[=!<>&|(){}")
			if n < 0 {
				n = len(p.rest)
			}
			if n == 0 {
				return nil, errors.New("a name is expected")
			}
			path, p.rest = append(path, step{name: p.rest[:n]}), p.rest[n:]
		case strings.HasPrefix(p.rest, "["):
			one, err := p.bracket()
			if err != nil {
				return nil, err
			}
			path = append(path, one)
		case len(path) == 0:
			return nil, errors.New("a name is expected after $")
		default:
			return path, nil
		}
	}
}

// bracket reads [0], [*], ["a"] or ['a'].
func (p *parser) bracket() (s step, err error) {
	end := strings.IndexByte(p.rest, ']')
	if end < 0 {
		return s, errors.New("] is expected")
	}
	inner := strings.TrimSpace(p.rest[1:end])
	switch {
	case inner == "*":
		s.index = -1
	case len(inner) > 2 && (inner[0] == '"' || inner[0] == '\'') && inner[len(inner)-1] == inner[0]:
		s.name = inner[1 : len(inner)-1]
	default:
		if s.index, err = strconv.Atoi(inner); err != nil || s.index < 0 {
			return s, errors.New("a number of an element, * or a quoted name is expected between [ and ]")
		}
	}
	p.rest = p.rest[end+1:]
	return s, nil
}

// leads says whether a path leads to something that holds.
func leads(x any, path []step, holds func(any) bool) bool {
	if len(path) == 0 {
		return holds(x)
	}
	s := path[0]
	if s.name != "" {
		members, ok := x.(map[string]any)
		if !ok {
			return false
		}
		below, ok := members[s.name]
		return ok && leads(below, path[1:], holds)
	}
	list, ok := x.([]any)
	if !ok {
		return false
	}
	if s.index >= 0 {
		return s.index < len(list) && leads(list[s.index], path[1:], holds)
	}
	for _, one := range list {
		if leads(one, path[1:], holds) {
			return true
		}
	}
	return false
}
