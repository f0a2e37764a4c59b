package logquery

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonDepthMax bounds the objects in objects of an event that are looked into.
const jsonDepthMax = 32

// jsonStart returns where the JSON of a message begins: the message is JSON, or Lambda's logger
// wrote it, TIME, tab, request id, tab, level, tab, and then the first object counts. -1: nowhere.
func jsonStart(message []byte) int {
	at := 0
	for at < len(message) && space(message[at]) {
		at++
	}
	if at == len(message) {
		return -1
	}
	if message[at] == '{' || message[at] == '[' {
		return at
	}
	const timeLen = len("2020-07-01T12:00:00.000Z")
	const idMax = 64
	if !digit(message[at]) || len(message) < at+timeLen+2 || message[at+timeLen-1] != 'Z' || message[at+timeLen] != '\t' {
		return -1
	}
	at += timeLen + 1
	tab := bytes.IndexByte(message[at:min(len(message), at+idMax)], '\t')
	if tab < 0 {
		return -1
	}
	at += tab + 1
	if open := bytes.IndexByte(message[at:], '{'); open >= 0 {
		return at + open
	}
	return -1
}

func space(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// jsonScan finds the values of some paths in JSON, and reads no more than it must. A path is the
// keys with dots between them; an element of an array has its index for a key.
type jsonScan struct {
	data  []byte
	at    int
	paths []string
	found []value // by path
	left  int     // paths that are not found yet
	open  []opened
	depth int
	row   *row
}

// opened is a path of which the first bytes are matched by the keys so far.
type opened struct{ path, matched int }

// find looks for the paths in the JSON at the beginning of data. What is not JSON ends it.
func (s *jsonScan) find(data []byte) {
	s.data, s.at, s.left, s.depth, s.open = data, 0, len(s.paths), 0, s.open[:0]
	for n := range s.paths {
		s.found[n] = value{}
		s.open = append(s.open, opened{n, 0})
	}
	s.value(0, nil)
}

func (s *jsonScan) skipSpace() {
	for s.at < len(s.data) && space(s.data[s.at]) {
		s.at++
	}
}

func (s *jsonScan) peek() byte {
	s.skipSpace()
	if s.at >= len(s.data) {
		return 0
	}
	return s.data[s.at]
}

// value reads a value. The paths open[base:] lead into it, those of leaf to it. False ends the
// scan: all is found, or the data are no JSON.
func (s *jsonScan) value(base int, leaf []opened) bool {
	switch c := s.peek(); {
	case c == '{' || c == '[':
		if len(s.open) == base || s.depth >= jsonDepthMax {
			return s.skipNested()
		}
		s.depth++
		defer func() { s.depth-- }()
		if c == '{' {
			return s.object(base)
		}
		return s.array(base)
	case c == '"':
		raw, escaped, ok := s.text()
		if !ok {
			return false
		}
		if len(leaf) > 0 {
			s.put(leaf, textValue(s.unescape(raw, escaped)))
		}
	default:
		from := s.at
		for s.at < len(s.data) && !space(s.data[s.at]) && s.data[s.at] != ',' && s.data[s.at] != '}' && s.data[s.at] != ']' {
			s.at++
		}
		if s.at == from {
			return false
		}
		if len(leaf) > 0 {
			s.put(leaf, scalar(s.data[from:s.at]))
		}
	}
	return s.left > 0
}

func scalar(raw []byte) value {
	switch string(raw) {
	case "true":
		return truthValue(true)
	case "false":
		return truthValue(false)
	case "null":
		return value{}
	}
	n, ok := parseNumber(raw)
	return valueIf(ok, value{numeric, n, raw})
}

func (s *jsonScan) put(leaf []opened, v value) {
	for _, o := range leaf {
		if s.found[o.path].Kind == absent && v.Kind != absent {
			s.found[o.path] = v
			s.left--
		}
	}
}

// member reads the value of a key. Behind base, open gets the paths that lead further.
func (s *jsonScan) member(base int, key []byte) bool {
	end := len(s.open)
	var leaf [4]opened
	leaves := leaf[:0]
	for n := base; n < end; n++ {
		o := s.open[n]
		rest := s.paths[o.path][o.matched:]
		if len(rest) < len(key) || rest[:len(key)] != string(key) {
			continue
		}
		if len(rest) == len(key) {
			leaves = append(leaves, o)
		} else if rest[len(key)] == '.' {
			s.open = append(s.open, opened{o.path, o.matched + len(key) + 1})
		}
	}
	more := s.value(end, leaves)
	s.open = s.open[:end]
	return more
}

func (s *jsonScan) object(base int) bool {
	s.at++
	for s.peek() == '"' {
		raw, escaped, ok := s.text()
		if !ok || s.peek() != ':' {
			return false
		}
		s.at++
		if !s.member(base, s.unescape(raw, escaped)) {
			return false
		}
		if s.peek() != ',' {
			break
		}
		s.at++
	}
	if s.peek() != '}' {
		return false
	}
	s.at++
	return true
}

func (s *jsonScan) array(base int) bool {
	s.at++
	var number [20]byte
	for n := int64(0); s.peek() != ']'; n++ {
		if !s.member(base, strconv.AppendInt(number[:0], n, 10)) {
			return false
		}
		if s.peek() == ',' {
			s.at++
		} else if s.peek() != ']' {
			return false
		}
	}
	s.at++
	return true
}

// text reads a string without its quotes.
func (s *jsonScan) text() (raw []byte, escaped, ok bool) {
	from := s.at + 1
	for at := from; ; {
		n := bytes.IndexByte(s.data[at:], '"')
		if n < 0 {
			return nil, false, false
		}
		end := at + n
		slashes := 0
		for end-slashes > from && s.data[end-slashes-1] == '\\' {
			slashes++
		}
		if at = end + 1; slashes%2 == 0 {
			raw, s.at = s.data[from:end], at
			return raw, bytes.IndexByte(raw, '\\') >= 0, true
		}
	}
}

// skipNested goes behind an object or array.
func (s *jsonScan) skipNested() bool {
	for depth := 0; s.at < len(s.data); {
		switch s.data[s.at] {
		case '"':
			if _, _, ok := s.text(); !ok {
				return false
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if s.at++; depth == 0 {
			return true
		}
	}
	return false
}

// unescape returns the text of a string; the row keeps it where it differs from the raw bytes.
func (s *jsonScan) unescape(raw []byte, escaped bool) []byte {
	if !escaped {
		return raw
	}
	return s.row.keep(func(b []byte) []byte {
		for n := 0; n < len(raw); n++ {
			c := raw[n]
			if c != '\\' || n+1 == len(raw) {
				b = append(b, c)
				continue
			}
			n++
			switch raw[n] {
			case 'n':
				b = append(b, '\n')
			case 't':
				b = append(b, '\t')
			case 'r':
				b = append(b, '\r')
			case 'b':
				b = append(b, '\b')
			case 'f':
				b = append(b, '\f')
			case 'u':
				r, ok := hex4(raw[n+1:])
				if ok {
					n += 4
				}
				if low, second := hex4(raw[min(len(raw), n+3):]); utf16.IsSurrogate(r) && second && raw[n+1] == '\\' && raw[n+2] == 'u' {
					r = utf16.DecodeRune(r, low)
					n += 6
				}
				b = utf8.AppendRune(b, r)
			default:
				b = append(b, raw[n])
			}
		}
		return b
	})
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return utf8.RuneError, false
	}
	n, err := strconv.ParseUint(string(b[:4]), 16, 32)
	if err != nil {
		return utf8.RuneError, false
	}
	return rune(n), true
}
