package query

import (
	"strings"
	"testing"
)

func TestCaret(t *testing.T) {
	for query, want := range map[string]string{
		"fields é | foo": "  fields é | foo\n             ^^^",
		"a\n\tb foo\nc":  "  \tb foo\n  \t  ^^^",
		"fields":         "  fields\n        ^",
	} {
		at := strings.Index(query, "foo")
		start, end := len([]rune(query)), len([]rune(query))
		if at >= 0 {
			start = len([]rune(query[:at]))
			end = start + 3
		}
		if got := caret(query, start, end); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

func TestWrite(t *testing.T) {
	rows := [][]field{{{"b", "1\n2"}, {pointer, "x"}}, {{"a", "\x1b[2J"}, {"b", "3"}, {"c", "long text"}}}
	for width, want := range map[int]string{
		0:  "a\tb\tc\n\t1 2\t\n\uFFFD[2J\t3\tlong text\n",
		12: "a     b    c\n      1 2\n\uFFFD[2J  3    …\n",
	} {
		t.Setenv("NO_COLOR", "1")
		var b strings.Builder
		if write(&b, rows, width); b.String() != want {
			t.Errorf("%d: got\n%q\nwant\n%q", width, b.String(), want)
		}
	}
}
