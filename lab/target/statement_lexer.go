package target

import (
	"strings"

	"kurabe/lab/study"
)

// token is a word, a quoted text or one other character of SQL.
type token struct {
	word   string // in lower case, of words without quotes
	text   string // between the quotes of a quoted one, else as it stands
	quoted bool   // a string
	ident  bool   // a name in quotes
}

func (t token) is(text string) bool {
	return !t.quoted && !t.ident && (t.word == text || t.text == text)
}

func (t token) in(words ...string) bool {
	for _, w := range words {
		if t.word == w {
			return true
		}
	}
	return false
}

// name is what a word or a name in quotes may call, in lower case; "" of other tokens.
func (t token) name() string {
	if t.ident {
		return strings.ToLower(t.text)
	}
	return t.word
}

func (t token) show() string {
	const most = 30
	return t.text[:min(most, len(t.text))]
}

func has(tokens []token, word string) bool {
	for _, t := range tokens {
		if t.word == word {
			return true
		}
	}
	return false
}

// lex divides SQL; a script's lines that begin with a backslash are the generator's own
// and end a statement. What two servers, or two settings of one, would divide in different
// ways it does not divide, and says why: a name could hide in it.
func lex(engine, text string, script bool) (tokens []token, why string) {
	l := lexer{postgres: engine == study.Postgres, script: script, text: text}
	for l.at < len(l.text) {
		if why := l.next(); why != "" {
			return nil, why
		}
	}
	return l.tokens, ""
}

type lexer struct {
	postgres bool
	script   bool
	text     string
	at       int
	tokens   []token
}

const unclear = "its quotes and comments can be read in more than one way"

func (l *lexer) next() string {
	rest := l.text[l.at:]
	switch c := rest[0]; {
	case c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f' || c == '\v':
		l.at++
	case strings.HasPrefix(rest, "--"), c == '#' && !l.postgres:
		return l.lineComment(rest)
	case strings.HasPrefix(rest, "/*"):
		return l.comment(rest)
	case c == '\'' || c == '"' || c == '`' && !l.postgres:
		return l.quote(rest, c)
	case c == '$' && l.postgres:
		return l.dollar(rest)
	case c == '\\':
		return l.command(rest)
	case wordByte(c):
		n := 1
		for n < len(rest) && (wordByte(rest[n]) || rest[n] == '$') {
			n++
		}
		l.tokens = append(l.tokens, token{word: strings.ToLower(rest[:n]), text: rest[:n]})
		l.at += n
	default:
		l.tokens = append(l.tokens, token{text: rest[:1]})
		l.at++
	}
	return ""
}

// command passes over one of the generator's, to the end of its line.
func (l *lexer) command(rest string) string {
	if !l.script {
		return unclear
	}
	n := 0
	for n < len(rest) && (rest[n] != '\n' || strings.HasSuffix(strings.TrimRight(rest[:n], "\r"), `\`)) {
		n++
	}
	l.tokens = append(l.tokens, token{text: ";"})
	l.at += n
	return ""
}

func wordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// lineComment passes over one. Two hyphens begin none for MariaDB unless a space follows.
func (l *lexer) lineComment(rest string) string {
	if !l.postgres && rest[0] == '-' && len(rest) > 2 && rest[2] > ' ' {
		l.tokens = append(l.tokens, token{text: "-"})
		l.at++
		return ""
	}
	if n := strings.IndexByte(rest, '\n'); n >= 0 {
		l.at += n
	} else {
		l.at = len(l.text)
	}
	return ""
}

// comment passes over one that is a comment for every server: /*! is SQL, and one within
// another ends where the server's kind says.
func (l *lexer) comment(rest string) string {
	end := strings.Index(rest[2:], "*/")
	if end < 0 || strings.HasPrefix(rest, "/*!") || strings.HasPrefix(rest, "/*M!") || strings.Contains(rest[2:2+end], "/*") {
		return unclear
	}
	l.at += end + 4
	return ""
}

// quote reads a string or a name. A doubled quote is one of them; what a backslash before
// a quote means depends on settings. MariaDB's double quotes are of strings or names, by
// its settings, so they count as names, which are looked at more closely.
func (l *lexer) quote(rest string, c byte) string {
	var b strings.Builder
	for n := 1; n < len(rest); n++ {
		switch {
		case rest[n] == '\\' && n+1 < len(rest) && (rest[n+1] == c || rest[n+1] == '\\'):
			return unclear
		case rest[n] != c:
			b.WriteByte(rest[n])
		case n+1 < len(rest) && rest[n+1] == c:
			b.WriteByte(c)
			n++
		default:
			l.tokens = append(l.tokens, token{text: b.String(), quoted: c == '\'', ident: c != '\''})
			l.at += n + 1
			return l.prefix(c)
		}
	}
	return unclear
}

// prefix refuses quotes whose text is not as it stands: U&"…".
func (l *lexer) prefix(c byte) string {
	if n := len(l.tokens); c == '"' && n > 2 && l.tokens[n-2].is("&") && l.tokens[n-3].is("u") {
		return unclear
	}
	return ""
}

// dollar reads $tag$ … $tag$, or one character.
func (l *lexer) dollar(rest string) string {
	tag := 1
	for tag < len(rest) && wordByte(rest[tag]) {
		tag++
	}
	if tag == len(rest) || rest[tag] != '$' {
		l.tokens = append(l.tokens, token{text: rest[:1]})
		l.at++
		return ""
	}
	mark := rest[:tag+1]
	end := strings.Index(rest[len(mark):], mark)
	if end < 0 {
		return unclear
	}
	l.tokens = append(l.tokens, token{text: rest[len(mark) : len(mark)+end], quoted: true})
	l.at += 2*len(mark) + end
	return ""
}
