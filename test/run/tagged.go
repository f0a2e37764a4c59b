package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// taggedTests are the names of tests behind a build tag, by folder ("./internal/x").
type taggedTests map[string][]string

func (t taggedTests) packages() []string { return slices.Sorted(maps.Keys(t)) }

// only leaves the tests that are wanted, and the packages that have any.
func (t taggedTests) only(want func(folder, test string) bool) taggedTests {
	left := taggedTests{}
	for folder, names := range t {
		for _, name := range names {
			if want(folder, name) {
				left[folder] = append(left[folder], name)
			}
		}
	}
	return left
}

func (t taggedTests) pattern() string {
	var names []string
	for _, n := range t {
		names = append(names, n...)
	}
	slices.Sort(names)
	return "^(" + strings.Join(slices.Compact(names), "|") + ")$"
}

func findTagged(root, tag string) (taggedTests, error) {
	found := taggedTests{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		names, err := taggedIn(path, tag)
		if err != nil || len(names) == 0 {
			return err
		}
		rel, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		dir := "./" + filepath.ToSlash(rel)
		found[dir] = append(found[dir], names...)
		return nil
	})
	return found, err
}

// taggedIn returns the tests of a file that is compiled with the tag and not without.
func taggedIn(path, tag string) ([]string, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if !bytes.Contains(src, []byte("//go:build")) {
		return nil, nil
	}
	file, err := parser.ParseFile(token.NewFileSet(), path, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("read tests: %w", err)
	}
	if !needsTag(file, tag) {
		return nil, nil
	}
	var names []string
	for _, decl := range file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") && f.Name.Name != "TestMain" {
			names = append(names, f.Name.Name)
		}
	}
	return names, nil
}

func needsTag(file *ast.File, tag string) bool {
	for _, group := range file.Comments {
		if group.Pos() > file.Package {
			break
		}
		for _, c := range group.List {
			if !constraint.IsGoBuild(c.Text) {
				continue
			}
			expr, err := constraint.Parse(c.Text)
			if err != nil {
				return false
			}
			// Of the house's own tags only this one is set; the rest describes the platform.
			with := expr.Eval(func(t string) bool { return t == tag || !houseTag(t) })
			without := expr.Eval(func(t string) bool { return !houseTag(t) })
			return with && !without
		}
	}
	return false
}

func houseTag(t string) bool { return t == "integration" || t == "fault" }
