package kurabe_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	maxFuncLines = 70
	packageDoc   = "doc.go"
)

// longFuncs may only shrink: the number is the present length, and a function
// that gets shorter takes its entry along.
var longFuncs = map[string]int{}

// errorBodyRooms may answer an error over HTTP: the codecs of the AWS protocols,
// and the links that no AWS client sees.
var errorBodyRooms = []string{"internal/aws/...", "internal/hostlink", "internal/harness", "lab/...", "test/..."}

// source is one parsed Go file.
type source struct {
	path string // relative to the root
	file *ast.File
	fset *token.FileSet
	test bool
}

func parse(t *testing.T, dir, name string, test bool) source {
	t.Helper()
	root, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	rel, err := filepath.Rel(root, filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, rel, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return source{rel, file, fset, test}
}

func (s source) room() string {
	r, _ := roomOf(filepath.ToSlash(filepath.Dir(s.path)))
	return r.path
}

func (s source) lines(n ast.Node) int {
	return s.fset.Position(n.End()).Line - s.fset.Position(n.Pos()).Line + 1
}

func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	for _, p := range list(t) {
		for _, f := range p.GoFiles {
			all = append(all, parse(t, p.Dir, f, false))
		}
		for _, f := range append(slices.Clone(p.TestGoFiles), p.XTestGoFiles...) {
			all = append(all, parse(t, p.Dir, f, true))
		}
	}
	return all
}

func TestTidyPackageDoc(t *testing.T) {
	docs := map[string][]string{} // by folder
	for _, s := range sources(t) {
		dir := filepath.Dir(s.path)
		if _, ok := docs[dir]; !ok {
			docs[dir] = nil
		}
		// An external test package is a package of its own.
		if s.file.Doc != nil && !strings.HasSuffix(s.file.Name.Name, "_test") && !ast.IsGenerated(s.file) {
			docs[dir] = append(docs[dir], filepath.Base(s.path))
		}
	}
	for dir, files := range docs {
		if len(files) != 1 || files[0] != packageDoc {
			t.Errorf("%s: the package comment stands in %q; it belongs in %s, once: what lives here, what must not, who calls it, which invariant it keeps", dir, files, packageDoc)
		}
	}
}

func TestTidyFuncLength(t *testing.T) {
	left := map[string]int{}
	for name, lines := range longFuncs {
		left[name] = lines
	}
	for _, s := range sources(t) {
		if ast.IsGenerated(s.file) {
			continue
		}
		for _, decl := range s.file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			name := filepath.ToSlash(s.path) + ":" + f.Name.Name
			listed, exception := left[name]
			delete(left, name)
			lines := s.lines(f)
			if problem := judgeLength(lines, maxFuncLines, listed, exception); problem != "" {
				t.Errorf("%s has %d lines: %s", name, lines, problem)
			}
		}
	}
	for name := range left {
		t.Errorf("%s is listed as a long function and does not exist", name)
	}
}

// judgeLength is the ratchet: an exception may shrink and never grow.
func judgeLength(lines, limit, listed int, exception bool) string {
	switch {
	case !exception && lines > limit:
		return fmt.Sprintf("more than %d; divide it", limit)
	case exception && lines > listed:
		return fmt.Sprintf("it is an exception with %d, and those never grow", listed)
	case exception && lines <= limit:
		return "it needs no exception any more; remove the entry"
	case exception && lines < listed:
		return fmt.Sprintf("it has shrunk from %d; lower the entry", listed)
	}
	return ""
}

func TestTidyPlanIsPure(t *testing.T) {
	for _, s := range sources(t) {
		if s.test || s.room() != "internal/plan/..." {
			continue
		}
		for _, path := range importsOf(s) {
			if slices.Contains(pureImports, path) {
				t.Errorf("%s imports %s: time and chance are inputs of the plan, reasons its only output", s.path, path)
			}
		}
		eachCall(s, func(name string, n ast.Node) {
			if slices.Contains(pureCalls, name) {
				t.Errorf("%s calls %s: the time of a plan is an input", s.fset.Position(n.Pos()), name)
			}
		})
	}
}

func TestTidyErrorBodies(t *testing.T) {
	for _, s := range sources(t) {
		if s.test || slices.Contains(errorBodyRooms, s.room()) {
			continue
		}
		eachCall(s, func(name string, n ast.Node) {
			if name == "http.Error" || name == "http.NotFound" {
				t.Errorf("%s calls %s: only the codecs in internal/aws write an error body, or a client meets one that it cannot parse", s.fset.Position(n.Pos()), name)
			}
		})
		ast.Inspect(s.file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && strings.Contains(lit.Value, "<ErrorResponse") {
				t.Errorf("%s writes an error body: only the codecs in internal/aws do", s.fset.Position(lit.Pos()))
			}
			return true
		})
	}
}

// eachCall visits every use of a function of an imported package, also one that
// is passed on and not called, under the name of the package's last element.
func eachCall(s source, visit func(name string, n ast.Node)) {
	names := map[string]string{}
	for _, spec := range s.file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		base := packageName(path)
		local := base
		if spec.Name != nil {
			local = spec.Name.Name
		}
		names[local] = base
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok && names[x.Name] != "" {
			visit(names[x.Name]+"."+sel.Sel.Name, n)
		}
		return true
	})
}

var majorElement = regexp.MustCompile(`/v[0-9]+$`)

// packageName is the last element of a path that is not a major version.
func packageName(path string) string {
	path = majorElement.ReplaceAllString(path, "")
	return path[strings.LastIndexByte(path, '/')+1:]
}

func importsOf(s source) []string {
	var out []string
	for _, spec := range s.file.Imports {
		if path, err := strconv.Unquote(spec.Path.Value); err == nil {
			out = append(out, path)
		}
	}
	return out
}
