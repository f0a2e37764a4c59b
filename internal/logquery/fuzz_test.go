package logquery

import (
	"encoding/json"
	"errors"
	"regexp"
	"testing"
	"unicode/utf8"
)

// FuzzQuery runs whatever parses. The search for literals in blocks and the way the events are
// spread over blocks and hosts change no result, nor does a partial result's way between hosts.
func FuzzQuery(f *testing.F) {
	for _, q := range []string{
		`fields @timestamp, t1, t2, t2 - t1 | filter @message like /INFO/ | stats avg(t2 - t1), pct(t2 - t1, 90), stddev(t1)`,
		"parse @message \"a*b\" as x | filter x in [1, 'b'] or not (`x y` =~ /(?i)sk[a-z]+/) | sort x desc, t1 | limit 3",
		`stats count_distinct(level), latest(@message) by bin(1mo), level | stats max(a) as b by c | display b # x`,
		`filter @message like /(?i)ERROR|plain/ and @message not like 'x' | dedup level | limit 2`,
		`fields jsonParse(@message) as j, j.user.tags.0 as k | limit 2 | filter isIpv4InSubnet(k, "10.0.0.0/8") = false | parse k /(?<z>a+)/`,
		`fields substr(@message, -1, 2^9), replace(@message, "a", ""), datefloor(t1, 3w), fromMillis(-1e300), 1 % 0`,
	} {
		f.Add(q, lines[1])
	}
	f.Fuzz(func(t *testing.T, query, message string) {
		messages := append([]string{message, "", message + message}, lines...)
		got, err := ask(query, blocks(3, messages...))
		var e *Error
		if errors.As(err, &e) {
			if n := utf8.RuneCountInString(query); e.Start < 0 || e.End < e.Start || e.End > n || e.Message == "" {
				t.Fatalf("%q at %d to %d of %d", e.Message, e.Start, e.End, n)
			}
		}
		if err != nil {
			return
		}
		if n := got.Statistics.Scanned; n != int64(len(messages)) {
			t.Fatalf("%d scanned", n)
		}
		if want := slow(t, query, messages); show(got) != want {
			t.Fatalf("got %q, want %q", show(got), want)
		}
	})
}

// slow evaluates a query over one block, without a search for literals, and sends the partial
// result through JSON.
func slow(t *testing.T, query string, messages []string) string {
	q, err := Parse(query)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Compile(q, rowsMax, start)
	if err != nil {
		t.Fatal(err)
	}
	p.segments[0].literals = literals{}
	r := p.NewRun(1, span)
	for _, b := range blocks(len(messages), messages...) {
		if err := r.Block(0, b, 0); err != nil {
			t.Fatal(err)
		}
	}
	part, err := r.Partial()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(part)
	if err != nil {
		t.Fatal(err)
	}
	var back Partial
	if err := json.Unmarshal(raw, &back); err != nil {
		t.Fatal(err)
	}
	result, err := p.Finish([]*Partial{&back})
	if err != nil {
		t.Fatal(err)
	}
	return show(result)
}

// FuzzFields compares the fields that are found in a message with those of encoding/json.
func FuzzFields(f *testing.F) {
	for _, l := range lines {
		f.Add(l, "user.name")
	}
	f.Add(`{"a.b":{"c":[1,{"d":"x\\\"\n"}]}}`, "a.b.c.1.d")
	f.Fuzz(func(t *testing.T, message, path string) {
		s := jsonScan{paths: []string{path}, found: make([]value, 1), row: &row{}}
		s.find([]byte(message))
		var tree map[string]json.RawMessage
		if json.Unmarshal([]byte(message), &tree) != nil {
			return
		}
		raw, ok := tree[path]
		var text string
		if !ok || json.Unmarshal(raw, &text) != nil || text == "" || len(raw) == 0 || raw[0] != '"' || !utf8.ValidString(message) {
			return
		}
		if got := s.found[0]; got.Kind == absent {
			t.Fatalf("%q is not found", path)
		}
	})
}

// FuzzAutomaton compares the automaton with regexp.
func FuzzAutomaton(f *testing.F) {
	for _, p := range []string{`a+b`, `(?i)sk\b`, `^x$`, `(?m)^b.$`, `[^a-f\d]{2,3}é?`, `\Bx|y\z`, `(a|ab)(c|bcd)*$`, `(?s).\x{10ffff}`, ``} {
		f.Add(p, "ab\nxyé\xffsk bx\ncdbcd")
	}
	f.Fuzz(func(t *testing.T, source, text string) {
		re, err := regexp.Compile(source)
		if err != nil || len(source) > 200 {
			return
		}
		c := classesOf(re)
		if c == nil {
			return
		}
		a := newAutomaton(re, c)
		for range 2 {
			for end := range len(text) + 1 {
				if got, want := a.match([]byte(text[:end])), re.MatchString(text[:end]); got != want {
					t.Fatalf("%q in %q: %v", source, text[:end], got)
				}
			}
		}
	})
}
