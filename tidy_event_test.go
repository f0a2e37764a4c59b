package kurabe_test

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const eventRoom = "internal/event"

// ownEvent is the id of an event that RDS has not got.
var ownEvent = regexp.MustCompile(`KURABE-EVENT-\d{4}`)

// sharedEvents are told in several places, of the same: of a standby and of a read replica.
var sharedEvents = map[string][]string{
	"KURABE-EVENT-0012": {"members.go", "replica.go"},
	"KURABE-EVENT-0017": {"members.go", "replica.go"},
}

// TestTidyEvents: RDS's ids are written in one place, and one of ours has one meaning.
func TestTidyEvents(t *testing.T) {
	own := map[string][]string{}
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
			if strings.Contains(text, "RDS-EVENT-") && s.room() != eventRoom {
				t.Errorf("%s: %q: tell of a Kind of %s, which has its category and words too", s.fset.Position(n.Pos()), text, eventRoom)
			}
			if name := filepath.Base(s.path); ownEvent.MatchString(text) && !slices.Contains(own[text], name) {
				own[text] = append(own[text], name)
			}
			return true
		})
	}
	if len(own) == 0 {
		t.Fatal("no event was found")
	}
	for id, files := range own {
		if slices.Sort(files); len(files) > 1 && !slices.Equal(files, sharedEvents[id]) {
			t.Errorf("%s is told in %q: take the next free number for what is something else", id, files)
		}
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
					if f, ok := call.Fun.(*ast.Ident); ok && f.Name == "of" {
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
