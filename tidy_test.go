// Package kurabe_test holds the house rules that a machine can check: who may
// import whom, how long a file may get, what must not stand in a text. The rules
// are tables in the tidy_*_test.go files; each failure names its reason.
package kurabe_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "kurabe"

// listed is what go list tells of one package.
type listed struct {
	ImportPath                         string
	Dir                                string
	GoFiles, TestGoFiles, XTestGoFiles []string
	Imports, TestImports, XTestImports []string
}

// list sees the files of every suite, so that no rule ends at a build tag.
func list(t *testing.T) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-tags=integration,fault",
		"-json=ImportPath,Dir,GoFiles,TestGoFiles,XTestGoFiles,Imports,TestImports,XTestImports", "./...")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var all []listed
	for dec := json.NewDecoder(out); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if err := cmd.Wait(); err != nil || len(all) == 0 {
		t.Fatalf("go list: %v, %d packages", err, len(all))
	}
	return all
}

func TestTidyImports(t *testing.T) {
	for _, p := range list(t) {
		from := folder(p.ImportPath)
		r, ok := roomOf(from)
		if !ok {
			t.Errorf("%s is in no room: add a row to the table in tidy_rooms_test.go, with its reason", from)
			continue
		}
		for _, to := range p.Imports {
			if why := forbidden(r, to, false); why != "" {
				t.Errorf("%s imports %s: %s", from, to, why)
			}
		}
		tests := append(slices.Clone(p.TestImports), p.XTestImports...)
		slices.Sort(tests)
		for _, to := range slices.Compact(tests) {
			if why := forbidden(r, to, true); why != "" {
				t.Errorf("a test of %s imports %s: %s", from, to, why)
			}
		}
	}
}

// forbidden returns why a package of the room may not import that path, or "".
func forbidden(r room, to string, test bool) string {
	for _, g := range guards {
		if !under(to, g.prefix) || (test || isTestOnly(r)) && g.tests || slices.ContainsFunc(g.rooms, func(x string) bool { return x == r.path }) {
			continue
		}
		return g.why
	}
	switch {
	case under(to, module):
		return forbiddenRoom(r, folder(to), test)
	case !strings.Contains(strings.SplitN(to, "/", 2)[0], "."):
		return "" // the standard library
	case allows(r.third, to), test && allows(testThird, to), test && allows(thirdBelow(r), to):
		return ""
	}
	return "no dependency of this room: " + r.why
}

func forbiddenRoom(r room, to string, test bool) string {
	target, ok := roomOf(to)
	switch {
	case !ok:
		return "it is in no room"
	case target.path == r.path:
		return ""
	case isTestOnly(target):
		if test || isTestOnly(r) {
			return ""
		}
		return "only tests may"
	case slices.Contains(anybody, target.path) && (test || !slices.Contains(without, r.path)):
		return ""
	case slices.Contains(r.may, "*"), slices.Contains(r.may, target.path):
		return ""
	case test && slices.Contains(testEdges[r.path], target.path):
		return ""
	case test && slices.ContainsFunc(below(r), func(x room) bool { return x.path == target.path }):
		return ""
	}
	return r.why
}

// below is every room that the room builds on: a test may set those up as well.
func below(r room) []room {
	seen := map[string]bool{}
	var out []room
	var visit func(room)
	visit = func(r room) {
		for _, m := range r.may {
			for _, x := range rooms {
				if x.path == m && !seen[m] {
					seen[m] = true
					out = append(out, x)
					visit(x)
				}
			}
		}
	}
	visit(r)
	return out
}

func thirdBelow(r room) []string {
	var out []string
	for _, x := range below(r) {
		out = append(out, x.third...)
	}
	return out
}

// roomOf finds the row with the longest matching path.
func roomOf(dir string) (room, bool) {
	if parent, ok := suiteOf(dir); ok {
		edges := append([]string{parent.path}, parent.may...)
		return room{dir, append(edges, testEdges[parent.path]...), parent.third, parent.why}, true
	}
	best, length := room{}, -1
	for _, r := range rooms {
		tree := strings.TrimSuffix(r.path, "/...")
		if (dir == tree || tree != r.path && under(dir, tree)) && len(tree) > length {
			best, length = r, len(tree)
		}
	}
	return best, length >= 0
}

// suiteOf is the room whose suite lives in the folder, "internal/store" for
// "internal/store/storetest".
func suiteOf(dir string) (room, bool) {
	above, name := path.Split(dir)
	above = strings.TrimSuffix(above, "/")
	i := slices.IndexFunc(rooms, func(r room) bool { return r.path == above })
	if i < 0 || name != path.Base(above)+"test" {
		return room{}, false
	}
	return rooms[i], true
}

func isTestOnly(r room) bool {
	_, suite := suiteOf(r.path)
	return suite || slices.Contains(testOnly, r.path)
}

func folder(importPath string) string {
	if importPath == module {
		return "."
	}
	return strings.TrimPrefix(importPath, module+"/")
}

func under(path, prefix string) bool { return path == prefix || strings.HasPrefix(path, prefix+"/") }

func allows(prefixes []string, path string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return p == "*" || under(path, p) })
}

func TestTidyRoomsAreConsistent(t *testing.T) {
	known := map[string]bool{"*": true}
	for _, r := range rooms {
		if known[r.path] {
			t.Errorf("room %s stands in the table twice", r.path)
		}
		known[r.path] = true
		if r.why == "" {
			t.Errorf("room %s has no reason", r.path)
		}
	}
	check := func(where string, paths []string) {
		for _, p := range paths {
			if !known[p] {
				t.Errorf("%s names room %s, which is not in the table", where, p)
			}
		}
	}
	for _, r := range rooms {
		check(r.path, r.may)
		if slices.Contains(r.may, r.path) {
			t.Errorf("room %s lists itself", r.path)
		}
	}
	for _, g := range guards {
		check("the guard of "+g.prefix, g.rooms)
	}
	check("anybody", anybody)
	check("without", without)
	check("testOnly", testOnly)
}
