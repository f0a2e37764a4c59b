package target

import (
	"math"
	"os"
	"strings"
	"testing"
)

func TestKeep(t *testing.T) {
	me, err := thisProcess()
	if err != nil {
		t.Fatal(err)
	}
	change := func(do func(*owner)) string {
		o := me
		do(&o)
		return o.String()
	}
	cases := map[string]struct {
		owner  string
		others bool
		goes   bool
	}{
		"ourselves":                        {owner: me.String()},
		"ourselves, all the same":          {owner: me.String(), others: true},
		"another life of our number":       {owner: change(func(o *owner) { o.start++ }), goes: true},
		"a number that nobody has":         {owner: change(func(o *owner) { o.pid = math.MaxInt32 }), goes: true},
		"before a restart of the machine":  {owner: change(func(o *owner) { o.boot = "00000000" }), goes: true},
		"another machine":                  {owner: change(func(o *owner) { o.machine = "00000000" })},
		"another machine, when asked to":   {owner: change(func(o *owner) { o.machine = "00000000" }), others: true, goes: true},
		"another container":                {owner: change(func(o *owner) { o.space = "1" })},
		"another container, when asked to": {owner: change(func(o *owner) { o.space = "1" }), others: true, goes: true},
		"nobody":                           {owner: ""},
		"nobody, when asked to":            {owner: "", others: true, goes: true},
		"nonsense":                         {owner: "a/b/c"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if why := keep(c.owner, me, c.others); (why == "") != c.goes {
				t.Errorf("kept because %q", why)
			}
		})
	}
}

func TestOwnerReadsItself(t *testing.T) {
	me, err := thisProcess()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := parseOwner(me.String() + "\n"); err != nil || got != me {
		t.Errorf("%v, %v", got, err)
	}
	// What a tag may hold.
	if strings.Trim(me.String(), "abcdefghijklmnopqrstuvwxyz0123456789-/") != "" || len(me.String()) > 256 {
		t.Errorf("no value of a tag: %s", me)
	}
	if start, err := processStart(os.Getpid()); err != nil || start != me.start {
		t.Errorf("%d, %v", start, err)
	}
}

func FuzzParseOwner(f *testing.F) {
	f.Add("a1b2c3d4/deadbeef/4026531836/17/99")
	f.Fuzz(func(t *testing.T, text string) {
		o, err := parseOwner(text)
		if err != nil {
			return
		}
		if again, err := parseOwner(o.String()); err != nil || again != o {
			t.Errorf("%q reads as %v and then as %v", text, o, again)
		}
	})
}

func FuzzParseStart(f *testing.F) {
	f.Add("17 (a b) c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20")
	f.Fuzz(func(_ *testing.T, text string) { _, _ = parseStart(text) })
}

func TestParseStart(t *testing.T) {
	const line = "17 (a b) c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20"
	if start, err := parseStart(line); err != nil || start != 4711 {
		t.Errorf("%d, %v", start, err)
	}
	if _, err := parseStart(strings.Replace(line, " S ", " Z ", 1)); err == nil {
		t.Error("one that has ended is taken for alive")
	}
}

func TestPassword(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		p := password()
		if len(p) != 24 || strings.ContainsAny(p, `"'/@\ `) || seen[p] {
			t.Fatalf("a password of %d letters, or the same again", len(p))
		}
		seen[p] = true
	}
}
