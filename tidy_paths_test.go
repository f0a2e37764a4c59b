package kurabe_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"
)

var (
	pathRow  = regexp.MustCompile("^\\| \\d+ \\| `([^`]+\\.go)` \\| ([^|]+) \\|")
	codeName = regexp.MustCompile("`(\\w+)`")
)

// TestTidyPaths fails when a file or a function is gone that the paths of docs/ARCHITECTURE.md
// lead a reader to.
func TestTidyPaths(t *testing.T) {
	text, err := os.ReadFile("docs/ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(text)) {
		m := pathRow.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		rows++
		file, err := parser.ParseFile(token.NewFileSet(), m[1], nil, parser.SkipObjectResolution)
		if err != nil {
			t.Errorf("docs/ARCHITECTURE.md: %v", err)
			continue
		}
		declared := map[string]bool{}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				declared[f.Name.Name] = true
			}
		}
		for _, name := range codeName.FindAllStringSubmatch(m[2], -1) {
			if !declared[name[1]] {
				t.Errorf("docs/ARCHITECTURE.md: %s has no function %s; name the file and the function that do this now", m[1], name[1])
			}
		}
	}
	if rows < 30 {
		t.Errorf("the paths have %d rows", rows)
	}
}
