package logpattern

import (
	"strings"
	"testing"

	"kurabe"
)

const (
	object = `{"user":{"id":17,"name":"ada"},"path":"/api/v1","n":null,"ok":true,"list":[{"a":1},{"a":2}],"big":1.5e3,"with space":"x","text":"42"}`
	access = `127.0.0.1 Prod ada [10/Oct/2000:13:25:15 -0700] "GET /index.html HTTP/1.0" 404 1534`
)

type example struct {
	pattern, message string
	want             bool
}

func wantMatches(t *testing.T, list []example) {
	t.Helper()
	for _, c := range list {
		p, err := Parse(c.pattern)
		if err != nil {
			t.Errorf("%s: %v", c.pattern, err)
			continue
		}
		if got := p.Match([]byte(c.message)); got != c.want {
			t.Errorf("%s on %s: %v", c.pattern, c.message, got)
		}
	}
}

func TestTerms(t *testing.T) {
	wantMatches(t, []example{})
}

func TestRefused(t *testing.T) {
	for pattern, want := range map[string]string{
		`"open`:                        "a quotation mark is not closed",
		`?`:                            "a term is empty",
		`a - b`:                        "a term is empty",
		`%(%`:                          "invalid regular expression: missing closing ): `(`, at character 1",
		`%a`:                           "not closed by %",
		`{`:                            "a selector, which begins with $, is expected",
		`{ $.a }`:                      "one of = != < <= > >= is expected",
		`{ $.a = }`:                    "a value is expected",
		`{ $.a = 1`:                    "} is expected",
		`{ $.a = 1 } x`:                "something follows the }",
		`{ $ = 1 }`:                    "a name is expected after $",
		`{ $.a[x] = 1 }`:               "a number of an element",
		`{ $.a > "x" }`:                "< <= > >= compare numbers",
		`{ $.a > x }`:                  "< <= > >= compare numbers",
		`{ $.a > %x% }`:                "compared by = or !=",
		`{ ($.a = 1 }`:                 ") is expected",
		`[a, ..., b, ...]`:             "... stands once",
		`[a`:                           "one of = != < <= > >= is expected",
		`[a = 1`:                       ", or ] is expected",
		`[]`:                           "the name of a field is expected",
		`[a] b`:                        "something follows the ]",
		strings.Repeat("a", 1025):      "1024 is the most",
		"{" + strings.Repeat("(", 100): "nested too deeply",
	} {
		_, err := Parse(pattern)
		if kurabe.CodeOf(err) != kurabe.CodeInvalidParameterValue || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", pattern, err, want)
		}
	}
}

// Any pattern is read or refused, and compared with any message.
func FuzzPattern(f *testing.F) {
	f.Add(`ERROR ?WARN -"a \" b" %x+%`, "WARN")
	f.Add(`{ $.user.id = 18 && ($.list[*].a >= 1e3 || $["x"] NOT EXISTS) }`, object)
	f.Add(`[ip, ..., status = 4* && status != 404, bytes > 1000]`, access)
	f.Fuzz(func(t *testing.T, pattern, message string) {
		p, err := Parse(pattern)
		if err != nil {
			if kurabe.CodeOf(err) != kurabe.CodeInvalidParameterValue {
				t.Fatal(err)
			}
			return
		}
		p.Match([]byte(message))
	})
}
