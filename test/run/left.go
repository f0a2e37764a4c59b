package main

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed left.txt
var leftText string

// leftTests are the tests that a run leaves out unless it is a whole one: by suite, by
// folder ("./internal/x"), their names. The name "*" is all of a folder, and "!Test" one
// that is run in spite of it.
type leftTests map[string]map[string]map[string]bool

// everyTest is the name that stands for all tests of a folder.
const everyTest = "*"

// parseLeft reads lines of "suite folder test ..."; "#" begins a comment.
func parseLeft(text string) (leftTests, error) {
	left := leftTests{}
	for n, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
			continue
		case len(words) < 3:
			return nil, fmt.Errorf("left.txt, line %d: want \"suite folder test ...\"", n+1)
		}
		folders := left[words[0]]
		if folders == nil {
			folders = map[string]map[string]bool{}
			left[words[0]] = folders
		}
		names := folders[words[1]]
		if names == nil {
			names = map[string]bool{}
			folders[words[1]] = names
		}
		for _, name := range words[2:] {
			names[name] = true
		}
	}
	return left, nil
}

func (l leftTests) has(suite, folder, test string) bool {
	names := l[suite][folder]
	return names[everyTest] && !names["!"+test] || names[test]
}

// leave takes out of the tests of a suite what this run does not do, and counts it: what
// is left out is said at the end of the run, never silently.
func (r *runner) leave(suite string, found taggedTests) taggedTests {
	if r.whole {
		return found
	}
	kept := found.only(func(folder, test string) bool { return r.left.has(suite, folder, test) == r.rest })
	for folder, names := range found {
		if !r.rest {
			r.leftOut += len(names) - len(kept[folder])
		}
	}
	return kept
}
