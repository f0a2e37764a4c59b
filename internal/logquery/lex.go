package logquery

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Error is a mistake in a query, for the user who wrote it. The offsets count characters, from 0;
// End is behind the last one.
type Error struct {
	Message    string
	Start, End int
}

func (e *Error) Error() string { return e.Message }

// tokenKind tells the tokens apart.
type tokenKind int

const (
	tokenEnd tokenKind = iota
	tokenName
	tokenNumber
	tokenPeriod // a number with a unit: 5m
	tokenText
	tokenSymbol
)

type token struct {
	kind       tokenKind
	text       string // of a name without backquotes, of a text without quotes
	quoted     bool   // a name in backquotes is no keyword
	start, end int    // byte offsets
}

func (t token) is(symbol string) bool { return t.kind == tokenSymbol && t.text == symbol }

func (t token) word(word string) bool {
	return t.kind == tokenName && !t.quoted && strings.EqualFold(t.text, word)
}

// mistake ends the parsing; parse recovers it. Offsets are bytes.
type mistake struct {
	text       string
	start, end int
}

func fail(start, end int, format string, args ...any) {
	panic(mistake{fmt.Sprintf(format, args...), start, end})
}

// at makes the error for users out of a mistake.
func (m mistake) at(query string) *Error {
	start := utf8.RuneCountInString(query[:min(m.start, len(query))])
	end := utf8.RuneCountInString(query[:min(m.end, len(query))])
	return &Error{Message: m.text, Start: start, End: max(end, start)}
}

// lexer reads a query on demand: whether a slash divides or begins a regular expression only the
// parser knows.
type lexer struct {
	query string
	next  token
	last  int // end of the token before next
}

func nameRune(r rune) bool {
	return r == '@' || r == '.' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r)
}

// advance reads the next token from a byte offset.
func (l *lexer) advance(at int) {
	q := l.query
	for at < len(q) {
		r, size := utf8.DecodeRuneInString(q[at:])
		if r == '#' {
			if end := strings.IndexByte(q[at:], '\n'); end >= 0 {
				at += end
				continue
			}
			at = len(q)
		} else if unicode.IsSpace(r) {
			at += size
		} else {
			break
		}
	}
	if at >= len(q) {
		l.next = token{start: len(q), end: len(q)}
		return
	}
	switch r, _ := utf8.DecodeRuneInString(q[at:]); {
	case r == '"' || r == '\'':
		l.next = l.quoted(at)
	case r >= '0' && r <= '9' || r == '.' && at+1 < len(q) && q[at+1] >= '0' && q[at+1] <= '9':
		l.next = l.number(at)
	case nameRune(r), r == '`':
		l.next = l.name(at)
	default:
		l.next = l.symbol(at)
	}
}

// name reads a name; it, or parts behind dots, may be in backquotes: a.`b c`.d
func (l *lexer) name(at int) token {
	var text strings.Builder
	end, quoted := at, false
	for end < len(l.query) {
		r, size := utf8.DecodeRuneInString(l.query[end:])
		if r == '`' && (end == at || strings.HasSuffix(text.String(), ".")) {
			close := strings.IndexByte(l.query[end+1:], '`')
			if close <= 0 {
				fail(end, len(l.query), "the name in backquotes has no end")
			}
			text.WriteString(l.query[end+1 : end+1+close])
			end, quoted = end+close+2, true
			continue
		}
		if !nameRune(r) {
			break
		}
		text.WriteString(l.query[end : end+size])
		end += size
	}
	return token{tokenName, text.String(), quoted, at, end}
}

func (l *lexer) number(at int) token {
	q, end := l.query, at
	digits := func() {
		for end < len(q) && q[end] >= '0' && q[end] <= '9' {
			end++
		}
	}
	digits()
	if end < len(q) && q[end] == '.' {
		end++
		digits()
	}
	if rest := q[end:]; len(rest) > 1 && (rest[0] == 'e' || rest[0] == 'E') {
		exponent := strings.TrimLeft(rest[1:], "+-")
		if len(rest)-len(exponent) <= 2 && exponent != "" && exponent[0] >= '0' && exponent[0] <= '9' {
			end = len(q) - len(exponent)
			digits()
		}
	}
	letters := end
	for end < len(q) && (q[end] >= 'a' && q[end] <= 'z' || q[end] >= 'A' && q[end] <= 'Z') {
		end++
	}
	kind := tokenNumber
	if end > letters {
		kind = tokenPeriod
	}
	return token{kind, q[at:end], false, at, end}
}

// quoted reads a text. A backslash before a quote or a backslash stands for that; \n and \t are
// a newline and a tab; any other stays as it is.
func (l *lexer) quoted(at int) token {
	q, quote := l.query, l.query[at]
	var text strings.Builder
	for n := at + 1; n < len(q); n++ {
		switch c := q[n]; {
		case c == quote:
			return token{tokenText, text.String(), true, at, n + 1}
		case c == '\\' && n+1 < len(q) && strings.IndexByte(`"'\nt`, q[n+1]) >= 0:
			n++
			text.WriteByte(map[byte]byte{'"': '"', '\'': '\'', '\\': '\\', 'n': '\n', 't': '\t'}[q[n]])
		default:
			text.WriteByte(c)
		}
	}
	fail(at, len(q), "the text has no closing quote")
	return token{}
}

func (l *lexer) symbol(at int) token {
	for _, s := range []string{"!=", "<=", ">=", "=~", "|", ",", "(", ")", "[", "]", "=", "<", ">", "+", "-", "*", "/", "^", "%"} {
		if strings.HasPrefix(l.query[at:], s) {
			return token{tokenSymbol, s, false, at, at + len(s)}
		}
	}
	r, size := utf8.DecodeRuneInString(l.query[at:])
	fail(at, at+size, "unexpected character %q", r)
	return token{}
}

// take returns the next token and goes on.
func (l *lexer) take() token {
	t := l.next
	l.last = t.end
	l.advance(t.end)
	return t
}

// regexp takes a regular expression between slashes; false when there is none.
func (l *lexer) regexp() (pattern string, start, end int, ok bool) {
	if !l.next.is("/") {
		return "", 0, 0, false
	}
	start = l.next.start
	var text strings.Builder
	for n := start + 1; n < len(l.query); n++ {
		switch c := l.query[n]; {
		case c == '/':
			l.last = n + 1
			l.advance(n + 1)
			return text.String(), start, n + 1, true
		case c == '\\' && n+1 < len(l.query):
			n++
			if l.query[n] != '/' {
				text.WriteByte('\\')
			}
			text.WriteByte(l.query[n])
		default:
			text.WriteByte(c)
		}
	}
	fail(start, len(l.query), "the regular expression has no closing slash")
	return "", 0, 0, false
}
