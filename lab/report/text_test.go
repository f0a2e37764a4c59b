package report

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestClean(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"plain":              {"pgaudit, all classes", "pgaudit, all classes"},
		"lines":              {"one\ntwo\tthree\r\n", "one two three"},
		"escape sequence":    {"\x1b[31mred", "\ufffd[31mred"},
		"turns the writing":  {"a\u202eb", "a\ufffdb"},
		"cannot be seen":     {"a\u200bb", "a\ufffdb"},
		"invalid":            {"a\xffb", "a\ufffdb"},
		"not a character":    {"a\uffffb", "a\ufffdb"},
		"other scripts":      {"監査ログ ′ × é", "監査ログ ′ × é"},
		"line of its own":    {"a\u2028b", "a b"},
		"nothing but spaces": {" \n ", ""},
	} {
		if got := clean(c.in); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func FuzzClean(f *testing.F) {
	for _, s := range []string{"", "a\x1b[2Jb", "監査\u202e", "\xff\xfe"} {
		f.Add(s, 7)
	}
	f.Fuzz(func(t *testing.T, s string, n int) {
		text := clean(s)
		if !utf8.ValidString(text) || strings.ContainsAny(text, "\x00\x1b\n\r\x7f\u202e\u0085") {
			t.Errorf("clean(%q) = %q", s, text)
		}
		if again := clean(text); again != text {
			t.Errorf("clean twice: %q, then %q", text, again)
		}
		n = min(max(n, 1), 200)
		if got := cells(cut(text, n)); got > n {
			t.Errorf("cut(%q, %d) has %d columns", text, n, got)
		}
		for _, line := range wrap(text, n+2, 1) {
			if cells(line) > n+2 {
				t.Errorf("wrap(%q, %d) has the line %q", text, n+2, line)
			}
		}
	})
}

func TestCells(t *testing.T) {
	for text, want := range map[string]int{
		"off": 3, "off′": 4, "×2": 2, "監査": 4, "e\u0301": 1, "±3 %": 4, "ｱ": 1, "…": 1,
	} {
		if got := cells(text); got != want {
			t.Errorf("%q takes %d columns, want %d", text, got, want)
		}
	}
}

func TestCut(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		n    int
		want string
	}{
		"fits":              {"table", 5, "table"},
		"too long":          {"table-csv", 6, "table…"},
		"wide does not fit": {"監査ログ", 4, "監…"},
		"no room":           {"abc", 1, "…"},
	} {
		if got := cut(c.in, c.n); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestWrap(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		n    int
		want string
	}{
		"words":               {"the quick brown fox", 9, "the quick| brown| fox"},
		"one long word":       {"a incomprehensibilities b", 8, "a| incomp…| b"},
		"keeps words as one":  {"is 3\u00a0% off", 5, "is| 3\u00a0%| off"},
		"nothing":             {"", 5, ""},
		"many spaces are one": {"a   b", 5, "a b"},
	} {
		if got := strings.Join(wrap(c.in, c.n, 1), "|"); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestCutPixels(t *testing.T) {
	const most = 60.0
	for _, s := range []string{"short", strings.Repeat("監", 200), strings.Repeat("W", 200), ""} {
		if got := cutPixels(s, most, textSize); pixels(got, textSize) > most {
			t.Errorf("%q is %v pixels wide", got, pixels(got, textSize))
		}
	}
}
