package script

import (
	"errors"
	"fmt"
	"strings"
)

// sql reads one statement up to its semicolon, or to the end of the script. An empty one
// is nil.
func (p *parser) sql() (*Command, error) {
	st := &Statement{Index: len(p.Statements)}
	var piece, plain strings.Builder
	flush := func() { st.texts = append(st.texts, piece.String()); piece.Reset() }
	for p.at < len(p.text) && p.text[p.at] != ';' {
		n, quoted, err := p.token()
		if err != nil {
			return nil, err
		}
		token := p.text[p.at : p.at+n]
		p.line += strings.Count(token, "\n")
		p.at += n
		switch {
		case quoted || token[0] != ':' || n == 1 || token == "::":
			if strings.HasPrefix(token, "--") {
				token = " "
			}
			piece.WriteString(token)
			plain.WriteString(token)
		default:
			place, ok := p.known[token[1:]]
			if !ok {
				return nil, fmt.Errorf("the variable %s has no value here; \\set it before", Brief(token))
			}
			flush()
			st.Variables = append(st.Variables, place)
			plain.WriteString(token)
		}
	}
	p.at = min(p.at+1, len(p.text))
	flush()
	if st.label = LabelText(plain.String()); st.label == "" {
		return nil, nil
	}
	if len(p.Statements) == StatementsMax {
		return nil, fmt.Errorf("more than %d statements", StatementsMax)
	}
	st.texts[0] = strings.TrimLeft(st.texts[0], " \t\r\n")
	last := len(st.texts) - 1
	st.texts[last] = strings.TrimRight(st.texts[last], " \t\r\n")
	p.Statements = append(p.Statements, st)
	return &Command{Statement: st}, nil
}

// token is the length of the next piece of a statement in which nothing is replaced or
// ends, and whether it is quoted or a comment. A backslash in quotes is a character like
// any other, as in standard SQL.
func (p *parser) token() (length int, quoted bool, err error) {
	rest := p.text[p.at:]
	switch c := rest[0]; {
	case c == '\'' || c == '"' || c == '`':
		end := strings.IndexByte(rest[1:], c)
		if end < 0 {
			return 0, false, fmt.Errorf("the quote %c has no end", c)
		}
		return end + 2, true, nil
	case strings.HasPrefix(rest, "--"):
		return endOfLine(rest, 0), true, nil
	case strings.HasPrefix(rest, "/*"):
		end := strings.Index(rest[2:], "*/")
		if end < 0 {
			return 0, false, errors.New("the comment /* has no end")
		}
		return end + 4, true, nil
	case c == '$':
		return dollarQuote(rest)
	case strings.HasPrefix(rest, "::"):
		return 2, false, nil
	case c == ':':
		return 1 + nameLength(rest[1:]), false, nil
	case c == '\\' && p.startsLine():
		return 0, false, errors.New("a backslash command stands inside of a statement; end it with a semicolon")
	}
	// A word with digits and dollars in it is one piece, or the $ in it would quote.
	if n := nameLength(rest); n > 0 {
		for n < len(rest) && rest[n] == '$' {
			n += 1 + nameLength(rest[n+1:])
		}
		return n, false, nil
	}
	return 1, false, nil
}

func (p *parser) startsLine() bool {
	before := strings.TrimRight(p.text[:p.at], " \t")
	return strings.HasSuffix(before, "\n")
}

// dollarQuote measures $tag$ … $tag$; a dollar that quotes nothing is one character.
func dollarQuote(rest string) (int, bool, error) {
	tag := 1 + nameLength(rest[1:])
	if tag >= len(rest) || rest[tag] != '$' {
		return 1, false, nil
	}
	mark := rest[:tag+1]
	end := strings.Index(rest[len(mark):], mark)
	if end < 0 {
		return 0, false, fmt.Errorf("the quote %s has no end", Brief(mark))
	}
	return 2*len(mark) + end, true, nil
}
