package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestParseLeft(t *testing.T) {
	left, err := parseLeft("# why\n\nfault ./a TestX TestY # long\nfault ./a TestZ\nunprivileged ./b * !TestKept\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		suite, folder, test string
		want                bool
	}{
		{"fault", "./a", "TestX", true}, {"fault", "./a", "TestY", true}, {"fault", "./a", "TestZ", true},
		{"fault", "./a", "TestW", false}, {"fault", "./b", "TestX", false}, {"integration", "./a", "TestX", false},
		{"unprivileged", "./b", "TestAnything", true}, {"unprivileged", "./b", "TestKept", false},
	} {
		if got := left.has(c.suite, c.folder, c.test); got != c.want {
			t.Errorf("%s %s %s: %v", c.suite, c.folder, c.test, got)
		}
	}
	if _, err := parseLeft("fault ./a\n"); err == nil {
		t.Error("a line without a test was accepted")
	}
}

func TestLeaveCounts(t *testing.T) {
	left, err := parseLeft("fault ./a TestX\nfault ./b *\n")
	if err != nil {
		t.Fatal(err)
	}
	r := &runner{left: left}
	kept := r.leave("fault", taggedTests{"./a": {"TestX", "TestY"}, "./b": {"TestZ", "TestW"}})
	if got := kept.packages(); !slices.Equal(got, []string{"./a"}) || kept.pattern() != "^(TestY)$" || r.leftOut != 3 {
		t.Errorf("kept %v, left out %d", kept, r.leftOut)
	}
	rest := &runner{left: left, rest: true}
	if kept := rest.leave("fault", taggedTests{"./a": {"TestX", "TestY"}, "./b": {"TestZ"}}); kept.pattern() != "^(TestX|TestZ)$" || rest.leftOut != 0 {
		t.Errorf("the rest is %v", kept)
	}
	whole := &runner{left: left, whole: true}
	if kept := whole.leave("fault", taggedTests{"./a": {"TestX", "TestY"}}); kept.pattern() != "^(TestX|TestY)$" || whole.leftOut != 0 {
		t.Errorf("the whole is %v", kept)
	}
}

// A name in left.txt that no test has any more would leave out nothing, or one day
// something else.
func TestLeftNamesTests(t *testing.T) {
	left, err := parseLeft(leftText)
	if err != nil {
		t.Fatal(err)
	}
	tags := map[string]string{"lab": "integration", "integration": "integration", "unprivileged": "integration", "fault": "fault"}
	for suite, folders := range left {
		tag, ok := tags[suite]
		if !ok {
			t.Errorf("left.txt: nothing of a suite %q can be left out", suite)
			continue
		}
		found, err := findTagged(filepath.Join("..", ".."), tag)
		if err != nil {
			t.Fatal(err)
		}
		for folder, names := range folders {
			for name := range names {
				name = strings.TrimPrefix(name, "!")
				if len(found[folder]) == 0 || name != everyTest && !slices.Contains(found[folder], name) {
					t.Errorf("left.txt: suite %s has no %s in %s", suite, name, folder)
				}
				for other, has := range found {
					// Packages share one pattern: a name is run in all of them or in none.
					if suite != "unprivileged" && name != everyTest && slices.Contains(has, name) && !left.has(suite, other, name) {
						t.Errorf("left.txt: suite %s leaves %s in %s and not in %s", suite, name, folder, other)
					}
				}
			}
		}
	}
}
