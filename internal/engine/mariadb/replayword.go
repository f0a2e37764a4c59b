package mariadb

import "strings"

// word is one of a statement: a name or keyword, or a sign, or a text.
type word struct {
	text   string // "" at the end
	quoted bool   // it is no keyword
}

// is says whether it is one of the keywords.
func (w word) is(keywords ...string) bool {
	for _, k := range keywords {
		if !w.quoted && strings.EqualFold(w.text, k) {
			return true
		}
	}
	return false
}

// words takes a statement apart, as far as its names and keywords go.
type words struct{ rest string }

func (w *words) next() word {
	w.skip()
	if w.rest == "" {
		return word{}
	}
	switch c := w.rest[0]; {
	case c == '\'' || c == '"' || c == '`':
		return word{w.quote(c), true}
	case ofWord(c):
		n := 1
		for n < len(w.rest) && ofWord(w.rest[n]) {
			n++
		}
		text := w.rest[:n]
		w.rest = w.rest[n:]
		return word{text, text[0] == '@'}
	}
	text := w.rest[:1]
	w.rest = w.rest[1:]
	return word{text, false}
}

func ofWord(c byte) bool {
	return c == '_' || c == '$' || c == '@' || c >= 0x80 || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// skip passes space and comments. The inside of a comment that the server executes
// counts.
func (w *words) skip() {
	for {
		w.rest = strings.TrimLeft(w.rest, " \t\r\n\f\v")
		switch {
		case strings.HasPrefix(w.rest, "/*!"), strings.HasPrefix(w.rest, "/*M!"):
			_, w.rest, _ = strings.Cut(w.rest, "!")
			w.rest = strings.TrimLeft(w.rest, "0123456789")
		case strings.HasPrefix(w.rest, "*/"):
			w.rest = w.rest[2:]
		case strings.HasPrefix(w.rest, "/*"):
			_, w.rest, _ = strings.Cut(w.rest, "*/")
		case strings.HasPrefix(w.rest, "#"), strings.HasPrefix(w.rest, "-- "), strings.HasPrefix(w.rest, "--\n"), strings.HasPrefix(w.rest, "--\t"):
			_, w.rest, _ = strings.Cut(w.rest, "\n")
		default:
			return
		}
	}
}

// quote reads a quoted text; a doubled quote is one of it.
func (w *words) quote(c byte) string {
	var b strings.Builder
	for n := 1; n < len(w.rest); n++ {
		switch {
		case w.rest[n] == '\\' && c != '`' && n+1 < len(w.rest):
			n++
		case w.rest[n] == c && n+1 < len(w.rest) && w.rest[n+1] == c:
			n++
		case w.rest[n] == c:
			w.rest = w.rest[n+1:]
			return b.String()
		}
		b.WriteByte(w.rest[n])
	}
	w.rest = ""
	return b.String()
}

// name reads [schema.]name that begins with first, and the word after it.
func (w *words) name(schema string, first word) (scheduledName, word) {
	after := w.next()
	if after.text != "." || after.quoted {
		return scheduledName{schema, strings.ToLower(first.text)}, after
	}
	second := w.next()
	return scheduledName{first.text, strings.ToLower(second.text)}, w.next()
}
