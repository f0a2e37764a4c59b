package kurabe_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	testName = regexp.MustCompile("`(Test[A-Za-z0-9_]+)(/[^`]+)?`")
	testDecl = regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(`)
)

// TestFaultsHaveTests: docs/faults.md promises a test of each case, and keeps it.
func TestFaultsHaveTests(t *testing.T) {
	page, err := os.ReadFile("docs/faults.md")
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, file := range tracked(t) {
		if strings.HasSuffix(file, "_test.go") {
			text, err := os.ReadFile(file)
			if err != nil {
				continue // removed, and not yet committed
			}
			code.Write(text)
		}
	}
	var declared []string
	for _, m := range testDecl.FindAllStringSubmatch(code.String(), -1) {
		declared = append(declared, m[1])
	}
	named := testName.FindAllStringSubmatch(string(page), -1)
	if len(named) < 50 {
		t.Fatalf("docs/faults.md names %d tests", len(named))
	}
	for _, m := range named {
		if !slices.Contains(declared, m[1]) {
			t.Errorf("docs/faults.md: there is no %s", m[1])
		}
		if m[2] != "" && !strings.Contains(code.String(), `"`+m[2][1:]+`"`) {
			t.Errorf("docs/faults.md: there is no case %q of %s", m[2][1:], m[1])
		}
	}
}
