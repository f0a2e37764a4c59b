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

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, message string
		want             bool
	}{
		{"", "", true},
		{"  ", "x", true},
		{"ERROR", "[ERROR 400] BAD", true},
		{"error", "[ERROR 400] BAD", false},
		{"ERROR BAD", "BAD ERROR", true},
		{"ERROR BAD", "ERROR", false},
		{`"out of memory"`, "it is out of memory", true},
		{`"out of memory"`, "memory out of it", false},
		{`"a \"b\" \\"`, `x a "b" \ y`, true},
		{"?ERROR ?WARN", "WARN", true},
		{"?ERROR ?WARN", "INFO", false},
		{"?ERROR ?WARN -again", "WARN again", false},
		{"INFO ?ERROR", "INFO", true}, // as in CloudWatch
		{"ERROR -EXITING", "ERROR", true},
		{"ERROR -EXITING", "ERROR EXITING", false},
		{`-"a b" x`, "x a b", false},
		{"-x", "y", true},
		{`%^[0-9]+ms%`, "15ms", true},
		{`%^[0-9]+ms%`, "took 15ms", false},
		{"a-b", "xa-by", true},
		{"\xff", "a\xffb", true},

		{`{ $.user.id = 17 }`, object, true},
		{`{$.user.id=17&&$.path="/api/*"}`, object, true},
		{`{ $.user.id = 18 || $.path = /api/* }`, object, true},
		{`{ $.user.id = 18 || $.path = /web/* }`, object, false},
		{`{ $.user.id = 18 && $.ok IS TRUE || $.user.name = "ada" }`, object, true},
		{`{ $.user.id = 18 && ($.ok IS TRUE || $.user.name = "ada") }`, object, false},
		{`{ $.user.id != 17 }`, object, false},
		{`{ $.user.id > 16.5 }`, object, true},
		{`{ $.user.id >= 1.7e1 }`, object, true},
		{`{ $.user.id < 1.7E+1 }`, object, false},
		{`{ $.big = 1500 }`, object, true},
		{`{ $.text > 41 }`, object, true},
		{`{ $.user.id = 1* }`, object, true},
		{`{ $.n IS NULL }`, object, true},
		{`{ $.user IS NULL }`, object, false},
		{`{ $.absent IS NULL }`, object, false},
		{`{ $.absent NOT EXISTS }`, object, true},
		{`{ $.n NOT EXISTS }`, object, false},
		{`{ $.absent != "x" }`, object, false},
		{`{ $.ok is false }`, object, false},
		{`{ $.list[1].a = 2 }`, object, true},
		{`{ $.list[2].a = 2 }`, object, false},
		{`{ $.list[*].a = 2 }`, object, true},
		{`{ $["with space"] = x }`, object, true},
		{`{ $.['with space'] = x }`, object, true},
		{`{ $.path = %^/api/v[0-9]$% }`, object, true},
		{`{ $.path != %^/api/v[0-9]$% }`, object, false},
		{`{ $.user.id = 17 }`, "no JSON", false},
		{`{ $.user.id = 17 }`, `{"user":`, false},
		{`{ $.user.id = 17 }`, "", false},
		{`{ $[0].a = 1 }`, ` [{"a":1}]`, true},

		{`[ip, env, user, time, request, status, bytes]`, access, true},
		{`[ip, env, user, time, request, status]`, access, false},
		{`[ip, env, user, time, request, status=404, bytes]`, access, true},
		{`[ip, ..., status = 4*, bytes > 1000]`, access, true},
		{`[..., status = 4*, bytes > 2000]`, access, false},
		{`[ip, ...]`, access, true},
		{`[...]`, "", true},
		{`[ip = 127.0.0.* , ...]`, access, true},
		{`[ip, env, user, time, request = *html*, status = 400 || status = 404, bytes]`, access, true},
		{`[ip, env, user, time, request = "GET /index*", status != 404, bytes]`, access, false},
		{`[ip, env, user != ada && user != bob, ...]`, access, false},
		{`[w1 = %^127%, ...]`, access, true},
		{`[a, b]`, "one", false},
		{`[a]`, `"open`, true},
	} {
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
