package tokenize

import (
	"regexp"
	"strings"
)

// Dialect is in what the lexers of the engines differ.
type Dialect struct {
	// MySQL: # begins a comment, comments do not nest, and "…" is a string.
	MySQL bool
	// Backslash escapes in every string: MySQL's way, and PostgreSQL's without
	// standard_conforming_strings.
	Backslash bool
}

// Statement replaces the literals of a statement by ?, and its comments and white space by
// single spaces, so that statements that differ in nothing else have one text. A list of
// literals becomes one. A literal that the end of the text cuts off is one too: no part of it
// is left.
func Statement(statement string, d Dialect) string {
	t := tokenizer{text: statement, Dialect: d}
	for t.at < len(t.text) {
		t.next()
	}
	out := strings.TrimSpace(t.out.String())
	for {
		shorter := literalList.ReplaceAllString(out, "?")
		shorter = rowList.ReplaceAllString(shorter, "(?)")
		if shorter == out {
			return out
		}
		out = shorter
	}
}

var (
	literalList = regexp.MustCompile(`\?(?: ?, ?\?)+`)
	rowList     = regexp.MustCompile(`\(\?\)(?: ?, ?\(\?\))+`)
)

type tokenizer struct {
	text string
	at   int
	out  strings.Builder
	last byte // written last
	end  byte // written last, but for spaces
	Dialect
}

func (t *tokenizer) put(s string) {
	if s == " " && (t.last == ' ' || t.last == 0) {
		return
	}
	t.out.WriteString(s)
	if t.last = s[len(s)-1]; t.last != ' ' {
		t.end = t.last
	}
}

// next reads one token.
func (t *tokenizer) next() {
	rest := t.text[t.at:]
	c := rest[0]
	switch {
	case space(c):
		t.at++
		t.put(" ")
	case strings.HasPrefix(rest, "--") || t.MySQL && c == '#':
		t.skipTo("\n")
		t.put(" ")
	case strings.HasPrefix(rest, "/*"):
		t.comment()
		t.put(" ")
	case (c == '-' || c == '+') && len(rest) > 1 && digit(rest[1]) && strings.IndexByte("(,=<>+-*/%", t.end) >= 0:
		t.at++ // the sign of a literal
		t.number()
	case c == '\'':
		t.quoted('\'', t.Backslash)
	case c == '"' && t.MySQL:
		t.quoted('"', t.Backslash)
	case c == '"' || c == '`':
		t.identifier(c)
	case c == '$' && !t.MySQL && t.dollar():
	case digit(c) || c == '.' && len(rest) > 1 && digit(rest[1]):
		t.number()
	case c == '$' && len(rest) > 1 && digit(rest[1]):
		t.at++
		t.number()
	case word(c):
		t.word()
	default:
		t.at++
		t.put(rest[:1])
	}
}

func space(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }
func digit(c byte) bool { return c >= '0' && c <= '9' }
func word(c byte) bool {
	return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80
}

func (t *tokenizer) skipTo(end string) {
	if n := strings.Index(t.text[t.at:], end); n >= 0 {
		t.at += n + len(end)
		return
	}
	t.at = len(t.text)
}

// comment skips a comment; PostgreSQL's nest.
func (t *tokenizer) comment() {
	depth := 0
	for t.at < len(t.text) {
		switch rest := t.text[t.at:]; {
		case strings.HasPrefix(rest, "/*") && (depth == 0 || !t.MySQL):
			depth++
			t.at += 2
		case strings.HasPrefix(rest, "*/"):
			depth--
			if t.at += 2; depth == 0 {
				return
			}
		default:
			t.at++
		}
	}
}

// quoted reads a string; a doubled quote is one of its characters.
func (t *tokenizer) quoted(quote byte, backslash bool) {
	t.at++
	for t.at < len(t.text) {
		c := t.text[t.at]
		t.at++
		switch {
		case c == '\\' && backslash:
			t.at++
		case c == quote && t.at < len(t.text) && t.text[t.at] == quote:
			t.at++
		case c == quote:
			t.put("?")
			return
		}
	}
	t.at = len(t.text)
	t.put("?")
}

// identifier reads a quoted name, which stays.
func (t *tokenizer) identifier(quote byte) {
	end := strings.IndexByte(t.text[t.at+1:], quote)
	if end < 0 { // cut off: it might be a string after all
		t.at = len(t.text)
		t.put("?")
		return
	}
	t.put(t.text[t.at : t.at+end+2])
	t.at += end + 2
}

// dollar reads a string between $tag$ and $tag$, if one begins here.
func (t *tokenizer) dollar() bool {
	rest := t.text[t.at+1:]
	n := 0
	for n < len(rest) && (word(rest[n]) || n > 0 && digit(rest[n])) {
		n++
	}
	if n == len(rest) || rest[n] != '$' {
		return false
	}
	tag := t.text[t.at : t.at+n+2]
	t.at += len(tag)
	t.skipTo(tag)
	t.put("?")
	return true
}

func (t *tokenizer) number() {
	for t.at < len(t.text) {
		c := t.text[t.at]
		signed := (c == '+' || c == '-') && t.at > 0 && t.text[t.at-1]|0x20 == 'e'
		if !digit(c) && !word(c) && c != '.' && !signed {
			break
		}
		t.at++
	}
	t.put("?")
}

// word reads a name or keyword. One that ends at a quote is the prefix of a literal, as in
// E'…', X'…' or _utf8'…'.
func (t *tokenizer) word() {
	from := t.at
	for t.at < len(t.text) && (word(t.text[t.at]) || digit(t.text[t.at]) || t.text[t.at] == '$') {
		t.at++
	}
	name := t.text[from:t.at]
	if t.at < len(t.text) && t.text[t.at] == '\'' && (len(name) == 1 || name[0] == '_') {
		t.quoted('\'', t.Backslash || name == "E" || name == "e")
		return
	}
	t.put(name)
}
