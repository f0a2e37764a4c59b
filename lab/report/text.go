package report

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// clean makes a text from outside safe to print: one line, valid UTF-8, nothing that
// moves a terminal's cursor, turns the direction of writing or cannot be seen.
func clean(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n', r == '\t', r == '\r', r == '\u2028', r == '\u2029':
			b.WriteByte(' ')
		case unicode.Is(unicode.Cc, r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Co, r), r&0xfffe == 0xfffe:
			b.WriteRune(utf8.RuneError)
		default:
			b.WriteRune(r)
		}
	}
	return strings.TrimSpace(b.String())
}

// cells is how many columns of a terminal a text takes. Characters whose width East
// Asian fonts and others do not agree on, ′ and × among them, count as one.
func cells(s string) int {
	n := 0
	for _, r := range s {
		n += runeCells(r)
	}
	return n
}

func runeCells(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// cut shortens a text to n columns; one that lost something ends in "…".
func cut(s string, n int) string {
	if cells(s) <= n {
		return s
	}
	var b strings.Builder
	room := n - 1
	for _, r := range s {
		if room -= runeCells(r); room < 0 {
			break
		}
		b.WriteRune(r)
	}
	if n > 0 {
		b.WriteString("…")
	}
	return b.String()
}

func padRight(s string, n int) string { return s + strings.Repeat(" ", max(0, n-cells(s))) }
func padLeft(s string, n int) string  { return strings.Repeat(" ", max(0, n-cells(s))) + s }

// wrap divides a text at spaces, not at those that keep words together, into lines of at most n columns, the lines after the
// first indented. A word that is longer has a line of its own, cut.
func wrap(s string, n, indent int) []string {
	var lines []string
	line, used := "", 0
	for _, word := range strings.FieldsFunc(s, func(r rune) bool { return r == ' ' }) {
		w := cells(word)
		if used > 0 && used+1+w > n {
			lines = append(lines, line)
			line, used = "", 0
		}
		switch {
		case used > 0:
			line, used = line+" "+word, used+1+w
		default:
			lead := 0
			if len(lines) > 0 {
				lead = indent
			}
			word = cut(word, n-lead)
			line, used = strings.Repeat(" ", lead)+word, lead+cells(word)
		}
	}
	if used > 0 {
		lines = append(lines, line)
	}
	return lines
}

// pixels is about how wide a text is in the page's font, at a size in pixels: exact
// metrics need the reader's fonts. The shares are those of DejaVu Sans, one of the
// widest that a page falls back to, so that others leave room and never overflow.
func pixels(s string, size float64) float64 {
	w := 0.0
	for _, r := range s {
		switch {
		case runeCells(r) == 2:
			w += 1
		case runeCells(r) == 0:
		case strings.ContainsRune("iIjJlt.,:;'|!()[] f·", r):
			w += 0.37
		case strings.ContainsRune("mMwW%@…", r):
			w += 0.95
		case unicode.IsUpper(r):
			w += 0.73
		default:
			w += 0.61
		}
	}
	return w * size
}

// cutPixels shortens a text to a width in pixels.
func cutPixels(s string, most, size float64) string {
	if pixels(s, size) <= most {
		return s
	}
	runes := []rune(s)
	for n := len(runes) - 1; n > 0; n-- {
		if short := string(runes[:n]) + "…"; pixels(short, size) <= most {
			return short
		}
	}
	return "…"
}

// sortedKeys are those of a map, in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
