package study

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// SizeMax bounds a definition, in bytes. The largest built-in one has some 20 KiB.
const SizeMax = 1 << 20

// Options are what a reader of definitions must be told.
type Options struct {
	// CheckMetric says why a name is no metric. nil lets every name pass.
	CheckMetric func(name string) error
}

// Parse reads a definition and checks all of it. The error is Problems: whoever wrote
// the file wants all its faults at once. The name is the file's, for them.
func Parse(name string, data []byte, o Options) (*Study, error) {
	p := &places{file: name, at: map[string]place{}, bad: map[string]bool{}}
	root := p.read(data)
	if root == nil {
		return nil, p.problems
	}
	s := &Study{}
	d := decoder{places: p}
	d.decode("", root, s)
	if len(s.Workloads) > 0 {
		fillDefaults(s)
	}
	c := checker{Options: o, study: s, refuse: p.refuse}
	c.check()
	if len(p.problems) > 0 {
		slices.SortStableFunc(p.problems, func(a, b Problem) int {
			return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
		})
		return nil, p.problems
	}
	return s, nil
}

// Check says what is wrong with a study that was put together or adjusted, as Parse does
// for one that was read. nil when nothing is.
func Check(s *Study, o Options) error {
	var found Problems
	c := checker{Options: o, study: s, refuse: func(path, format string, args ...any) {
		found = append(found, Problem{Path: path, Text: fmt.Sprintf(format, args...)})
	}}
	c.check()
	if len(found) > 0 {
		return found
	}
	return nil
}

// fillDefaults puts in what a file may leave out, so that nobody after it has to know.
func fillDefaults(s *Study) {
	lists := [][]Workload{s.Workloads}
	for _, a := range []*Adjustment{s.Quick, s.AsPublished} {
		if a != nil {
			lists = append(lists, a.PutWorkloads)
		}
	}
	for _, list := range lists {
		for i := range list {
			if w := &list[i]; w.Mode == ModeOpen && w.Arrival == "" {
				w.Arrival = ArrivalPoisson
			}
		}
	}
}

// place is where something stands, counted from 1.
type place struct{ line, column int }

// places knows where each key of a file stands, and collects problems.
type places struct {
	file     string
	at       map[string]place
	bad      map[string]bool // has a problem already; a second about it would only confuse
	problems Problems
}

// refuse notes a problem at the key or at the nearest above it that is in the file.
func (p *places) refuse(path, format string, args ...any) {
	if p.isBad(path) {
		return
	}
	where := place{1, 1}
	for up := path; ; up = above(up) {
		if at, ok := p.at[up]; ok {
			where = at
			break
		}
		if up == "" {
			break
		}
	}
	p.refuseAt(where, path, format, args...)
}

func (p *places) refuseAt(where place, path, format string, args ...any) {
	p.bad[path] = true
	p.problems = append(p.problems, Problem{p.file, where.line, where.column, path, fmt.Sprintf(format, args...)})
}

// isBad says whether the path, or what holds it, could not be read.
func (p *places) isBad(path string) bool {
	for up := path; ; up = above(up) {
		if p.bad[up] {
			return true
		}
		if up == "" {
			return false
		}
	}
}

// above is the path of what holds a path: a.b[0] is in a.b, which is in a.
func above(path string) string { return path[:max(0, strings.LastIndexAny(path, ".["))] }

// yamlLine is how the library names the line of a fault; it knows no column.
var yamlLine = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?`)

// read gives the mapping that the file is, or nil with a problem.
func (p *places) read(data []byte) *yaml.Node {
	if len(data) > SizeMax {
		p.refuse("", "the file has %d bytes; %d are read at the most", len(data), SizeMax)
		return nil
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, second yaml.Node
	err := decoder.Decode(&document)
	switch {
	case errors.Is(err, io.EOF):
		p.refuse("", "the file is empty; `kurabe lab init` writes one to begin with")
		return nil
	case err != nil:
		p.refuseSyntax(err)
		return nil
	case len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode:
		p.refuse("", "a study is a mapping, lines of `key: value`; `kurabe lab init` writes one to begin with")
		return nil
	}
	if err := decoder.Decode(&second); err == nil {
		p.refuseAt(place{second.Line, second.Column}, "", "a second document; a file holds one study")
		return nil
	} else if !errors.Is(err, io.EOF) {
		p.refuseSyntax(err)
		return nil
	}
	return document.Content[0]
}

func (p *places) refuseSyntax(err error) {
	text := err.Error()
	found := yamlLine.FindStringSubmatch(text)
	line, numberErr := strconv.Atoi(found[1])
	if numberErr != nil {
		line = 1
	}
	p.refuseAt(place{line, 1}, "", "not YAML: %s", text[len(found[0]):])
}
