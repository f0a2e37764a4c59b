package kurabe_test

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const eventRoom = "internal/event"

// TestTidyEvents: ids are written in one place.
func TestTidyEvents(t *testing.T) {
	found := 0
	for _, s := range productSources(t) {
		ast.Inspect(s.file, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case !strings.Contains(text, "-EVENT-"):
			case s.room() == eventRoom:
				found++
			default:
				t.Errorf("%s: %q: write a Kind of %s, which has its category and words too", s.fset.Position(n.Pos()), text, eventRoom)
			}
			return true
		})
	}
	if found == 0 {
		t.Fatal("no event was found")
	}
}

// TestTidyEventsAreTold: what is declared is told somewhere.
func TestTidyEventsAreTold(t *testing.T) {
	var names []string
	used := map[string]bool{}
	for _, s := range productSources(t) {
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "event" {
					used[n.Sel.Name] = true
				}
			case *ast.ValueSpec:
				if call, ok := first(n.Values).(*ast.CallExpr); ok && s.room() == eventRoom {
					if f, ok := call.Fun.(*ast.Ident); ok && (f.Name == "of" || f.Name == "own") {
						names = append(names, n.Names[0].Name)
					}
				}
			}
			return true
		})
	}
	if len(names) == 0 {
		t.Fatal("no event was found")
	}
	for _, name := range names {
		if !used[name] {
			t.Errorf("nobody tells of event.%s", name)
		}
	}
}

func first(list []ast.Expr) ast.Expr {
	if len(list) == 0 {
		return nil
	}
	return list[0]
}

func productSources(t *testing.T) []source {
	return slices.DeleteFunc(sources(t), func(s source) bool { return s.test })
}
