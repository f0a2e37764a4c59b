package kurabe_test

import (
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const attacksPage = "docs/guide/security-attacks.md"

var (
	testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Za-z0-9_]+)\(`)
	quoted   = regexp.MustCompile("`([^`]+)`")
)

// TestTidyAttacks keeps the page of what was attacked true: each test on it is there, and each
// test of an attack is on it.
func TestTidyAttacks(t *testing.T) {
	found := map[string]bool{} // "folder name"
	for _, f := range tracked(t) {
		if !strings.HasSuffix(f, "_test.go") {
			continue
		}
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range testFunc.FindAllStringSubmatch(string(text), -1) {
			found[path.Dir(f)+" "+m[1]] = true
		}
	}
	page, err := os.ReadFile(attacksPage)
	if err != nil {
		t.Fatal(err)
	}
	named := namedTests(string(page))
	for _, name := range named {
		if !found[name] {
			t.Errorf("%s names %s, which is not there", attacksPage, name)
		}
	}
	for name := range found {
		if strings.Contains(name, " TestAttack") && !slices.Contains(named, name) {
			t.Errorf("%s does not name %s", attacksPage, name)
		}
	}
	if len(named) < 30 {
		t.Errorf("%s names only %d tests", attacksPage, len(named))
	}
}

// namedTests are the tests in the last column of the page's tables, each after its folder.
func namedTests(page string) (names []string) {
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 4 {
			continue
		}
		folder := "."
		for _, m := range quoted.FindAllStringSubmatch(cells[2], -1) {
			if strings.HasPrefix(m[1], "Test") || strings.HasPrefix(m[1], "Fuzz") {
				names = append(names, folder+" "+m[1])
			} else {
				folder = m[1]
			}
		}
	}
	return names
}
