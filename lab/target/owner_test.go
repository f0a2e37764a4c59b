package target

import (
	"math"
	"strings"
	"testing"

	"kurabe/lab/owner"
)

func TestKeep(t *testing.T) {
	me, err := owner.This()
	if err != nil {
		t.Fatal(err)
	}
	change := func(do func(*owner.Owner)) string {
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
		"another life of our number":       {owner: change(func(o *owner.Owner) { o.Start++ }), goes: true},
		"a number that nobody has":         {owner: change(func(o *owner.Owner) { o.PID = math.MaxInt32 }), goes: true},
		"before a restart of the machine":  {owner: change(func(o *owner.Owner) { o.Boot = "00000000" }), goes: true},
		"another machine":                  {owner: change(func(o *owner.Owner) { o.Machine = "00000000" })},
		"another machine, when asked to":   {owner: change(func(o *owner.Owner) { o.Machine = "00000000" }), others: true, goes: true},
		"another container":                {owner: change(func(o *owner.Owner) { o.Space = "1" })},
		"another container, when asked to": {owner: change(func(o *owner.Owner) { o.Space = "1" }), others: true, goes: true},
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
