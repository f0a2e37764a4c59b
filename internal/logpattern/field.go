package logpattern

import (
	"errors"
	"strings"
)

// fields reads [ … ], a pattern of messages whose fields are between spaces. Each of its parts
// stands for one field; one part may be ..., for any number of them.
func (p *parser) fields() (func([]byte) bool, error) {
	p.take("[")
	var before, behind []func(string) bool
	rest := false // a ... was read
	for {
		switch {
		case p.take("..."):
			if rest {
				return nil, errors.New("... stands once")
			}
			rest = true
		default:
			one, err := conditions(p, p.field)
			if err != nil {
				return nil, err
			}
			if rest {
				behind = append(behind, one)
			} else {
				before = append(before, one)
			}
		}
		if p.take(",") {
			continue
		}
		if !p.take("]") {
			return nil, errors.New(", or ] is expected")
		}
		if strings.TrimSpace(p.rest) != "" {
			return nil, errors.New("something follows the ]")
		}
		break
	}
	return func(message []byte) bool {
		list := split(string(message))
		if len(list) < len(before)+len(behind) || !rest && len(list) > len(before) {
			return false
		}
		for n, holds := range before {
			if !holds(list[n]) {
				return false
			}
		}
		for n, holds := range behind {
			if !holds(list[len(list)-len(behind)+n]) {
				return false
			}
		}
		return true
	}, nil
}

// field reads a name, or a condition on the field of that name.
func (p *parser) field() (func(string) bool, error) {
	p.space()
	n := 0
	for n < len(p.rest) && (isNameByte(p.rest[n:]) || p.rest[n] == '-' || p.rest[n] == '.' || p.rest[n] == '$') {
		n++
	}
	if n == 0 {
		return nil, errors.New("the name of a field is expected")
	}
	p.rest = p.rest[n:]
	if p.space(); p.rest != "" && strings.ContainsRune(",]&|)", rune(p.rest[0])) {
		return func(string) bool { return true }, nil
	}
	op, err := p.operator()
	if err != nil {
		return nil, err
	}
	v, err := p.value(op, " \t\r\n,]&|()")
	return func(text string) bool {
		if x, numeric := parseNumber(text); numeric && v.numeric {
			return compareNumbers(op, x, v.number)
		}
		return (op == "=" || op == "!=") && v.isText(text) == (op == "=")
	}, err
}

// split returns the fields of a message: what is between spaces, between quotation marks, or
// between [ and ].
func split(message string) (list []string) {
	for {
		message = strings.TrimLeft(message, " \t\r\n")
		if message == "" {
			return list
		}
		if end := map[byte]string{'"': `"`, '[': "]"}[message[0]]; end != "" {
			if n := strings.Index(message[1:], end); n >= 0 {
				list, message = append(list, message[1:n+1]), message[n+2:]
				continue
			}
		}
		n := strings.IndexAny(message, " \t\r\n")
		if n < 0 {
			n = len(message)
		}
		list, message = append(list, message[:n]), message[n:]
	}
}
