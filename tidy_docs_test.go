package kurabe_test

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	mdLink  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	mdCode  = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
	mdTitle = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	mdDrop  = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// documents are the Markdown files of the tree, with their text.
func documents(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules"):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".md":
			return nil
		}
		text, err := os.ReadFile(path)
		found[path] = string(text)
		return err
	})
	if err != nil || len(found) < 20 {
		t.Fatalf("%d documents, %v", len(found), err)
	}
	return found
}

// anchors are the places in a document that a link can name, as GitHub makes them.
func anchors(text string) []string {
	var all []string
	for _, m := range mdTitle.FindAllStringSubmatch(text, -1) {
		plain := mdLink.ReplaceAllString(strings.ToLower(m[1]), "]")
		all = append(all, strings.ReplaceAll(mdDrop.ReplaceAllString(plain, ""), " ", "-"))
	}
	return all
}

func TestTidyLinks(t *testing.T) {
	docs := documents(t)
	for path, text := range docs {
		for _, m := range mdLink.FindAllStringSubmatch(mdCode.ReplaceAllString(text, ""), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			file := path
			if target != "" {
				file = filepath.Join(filepath.Dir(path), target)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s links to %s, which does not exist", path, m[1])
				continue
			}
			if anchor != "" && filepath.Ext(file) == ".md" && !slices.Contains(anchors(docs[file]), anchor) {
				t.Errorf("%s links to %s: %s has no such heading", path, m[1], file)
			}
		}
	}
}

// TestTidyDocsIndex fails when a page cannot be found from docs/README.md.
func TestTidyDocsIndex(t *testing.T) {
	docs := documents(t)
	index := docs["docs/README.md"]
	for path := range docs {
		rel, inDocs := strings.CutPrefix(path, "docs/")
		if !inDocs || rel == "README.md" || strings.HasPrefix(rel, "decisions/") && rel != "decisions/README.md" {
			continue
		}
		if !strings.Contains(index, "]("+rel+")") {
			t.Errorf("docs/README.md does not list %s", rel)
		}
	}
	table := docs["docs/decisions/README.md"]
	for path := range docs {
		if name, ok := strings.CutPrefix(path, "docs/decisions/"); ok && name != "README.md" && !strings.Contains(table, "]("+name+")") {
			t.Errorf("docs/decisions/README.md does not list %s", name)
		}
	}
}

// TestTidyGlossary holds the glossary to its promise: in order, each word once, and names of
// the code that exist.
func TestTidyGlossary(t *testing.T) {
	text, err := os.ReadFile("docs/GLOSSARY.md")
	if err != nil {
		t.Fatal(err)
	}
	names := identifiers(t)
	var words []string
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 3 || strings.HasPrefix(cells[0], "---") || strings.TrimSpace(cells[0]) == "word" {
			continue
		}
		words = append(words, strings.ToLower(strings.TrimSpace(cells[0])))
		for _, code := range mdCode.FindAllString(cells[2], -1) {
			name := strings.Trim(code, "`")
			if _, err := os.Stat(name); err != nil && !names[name] {
				t.Errorf("%s: the code has no %s", words[len(words)-1], name)
			}
		}
	}
	if len(words) < 40 || !slices.IsSorted(words) || len(slices.Compact(slices.Clone(words))) != len(words) {
		t.Errorf("the glossary has to be in order, with each word once: %q", words)
	}
}

// identifiers are the names in the root package and in the engines' room.
func identifiers(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	engine, err := filepath.Glob("internal/engine/*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, path := range slices.Concat(files, engine) {
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		set := token.NewFileSet()
		var s scanner.Scanner
		s.Init(set.AddFile(path, set.Base(), len(src)), src, nil, 0)
		for {
			_, tok, lit := s.Scan()
			if tok == token.EOF {
				break
			}
			if tok == token.IDENT {
				found[lit] = true
			}
		}
	}
	return found
}

// TestTidyDecisions keeps the table of decisions and their pages of one mind.
func TestTidyDecisions(t *testing.T) {
	docs := documents(t)
	table := docs["docs/decisions/README.md"]
	form := regexp.MustCompile(`^# (\d+)\. (.+)\n\nStatus: (Current|Superseded)[^\n]*\. Date: \d{4}-\d\d-\d\d\.\n\n`)
	for path, text := range docs {
		name, ok := strings.CutPrefix(path, "docs/decisions/")
		if !ok || name == "README.md" {
			continue
		}
		m := form.FindStringSubmatch(text)
		if m == nil {
			t.Errorf("%s does not begin with \"# N. Title\", an empty line and \"Status: Current. Date: YYYY-MM-DD.\"", path)
			continue
		}
		if row := "| " + m[1] + " | [" + m[2] + "](" + name + ") |"; !strings.Contains(table, row) {
			t.Errorf("docs/decisions/README.md has no row %q", row)
		}
	}
}

// TestTidyGuides fails when the first sentence of a guide does not say what its reader can do.
func TestTidyGuides(t *testing.T) {
	begins := regexp.MustCompile(`^# [^\n]+\n\n(With this page|In ten minutes) you [^\n]+\.`)
	guides := 0
	for path, text := range documents(t) {
		if !strings.HasPrefix(path, "docs/guide/") {
			continue
		}
		if guides++; !begins.MatchString(text) {
			t.Errorf("%s does not begin with a title, an empty line and \"With this page you …\"", path)
		}
	}
	if guides < 20 {
		t.Errorf("%d guides", guides)
	}
}
