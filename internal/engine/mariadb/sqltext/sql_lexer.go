package sqltext

import "strings"

// Word is one of a statement: a name or keyword, or a sign, or a text.
type Word struct {
	Text   string // "" at the end
	Quoted bool   // it is no keyword
}

// Is says whether it is one of the keywords.
func (w Word) Is(keywords ...string) bool {
	for _, k := range keywords {
		if !w.Quoted && strings.EqualFold(w.Text, k) {
			return true
		}
	}
	return false
}

// Lexer takes a statement apart, as far as its names and keywords go.
type Lexer struct{ Rest string }

func (w *Lexer) Next() Word {
	w.skip()
	if w.Rest == "" {
		return Word{}
	}
	switch c := w.Rest[0]; {
	case c == '\'' || c == '"' || c == '`':
		return Word{w.quote(c), true}
	case ofWord(c):
		n := 1
		for n < len(w.Rest) && ofWord(w.Rest[n]) {
			n++
		}
		text := w.Rest[:n]
		w.Rest = w.Rest[n:]
		return Word{text, text[0] == '@'}
	}
	text := w.Rest[:1]
	w.Rest = w.Rest[1:]
	return Word{text, false}
}

func ofWord(c byte) bool {
	return c == '_' || c == '$' || c == '@' || c >= 0x80 || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// skip passes space and comments. The inside of a comment that the server executes
// counts.
func (w *Lexer) skip() {
	for {
		w.Rest = strings.TrimLeft(w.Rest, " \t\r\n\f\v")
		switch {
		case strings.HasPrefix(w.Rest, "/*!"), strings.HasPrefix(w.Rest, "/*M!"):
			_, w.Rest, _ = strings.Cut(w.Rest, "!")
			w.Rest = strings.TrimLeft(w.Rest, "0123456789")
		case strings.HasPrefix(w.Rest, "*/"):
			w.Rest = w.Rest[2:]
		case strings.HasPrefix(w.Rest, "/*"):
			_, w.Rest, _ = strings.Cut(w.Rest, "*/")
		case strings.HasPrefix(w.Rest, "#"), strings.HasPrefix(w.Rest, "-- "), strings.HasPrefix(w.Rest, "--\n"), strings.HasPrefix(w.Rest, "--\t"):
			_, w.Rest, _ = strings.Cut(w.Rest, "\n")
		default:
			return
		}
	}
}

// quote reads a quoted text; a doubled quote is one of it.
func (w *Lexer) quote(c byte) string {
	var b strings.Builder
	for n := 1; n < len(w.Rest); n++ {
		switch {
		case w.Rest[n] == '\\' && c != '`' && n+1 < len(w.Rest):
			n++
		case w.Rest[n] == c && n+1 < len(w.Rest) && w.Rest[n+1] == c:
			n++
		case w.Rest[n] == c:
			w.Rest = w.Rest[n+1:]
			return b.String()
		}
		b.WriteByte(w.Rest[n])
	}
	w.Rest = ""
	return b.String()
}
