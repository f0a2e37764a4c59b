package main

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// outcome is what is known of one test.
type outcome struct {
	action   string // pass, fail, skip; empty while it runs
	children bool
	output   []string
}

// tally collects the tests of one package.
type tally struct {
	name    string
	verbose bool
	tests   map[string]*outcome
	order   []string
	output  []string // of the package itself
	out     io.Writer
}

func newTally(name string, verbose bool, out io.Writer) *tally {
	return &tally{name: name, verbose: verbose, out: out, tests: map[string]*outcome{}}
}

// see takes one event and reports whether it ends the package.
func (p *tally) see(e event) bool {
	if e.Test == "" {
		switch e.Action {
		case "pass", "fail", "skip":
			return true
		case "output":
			p.output = append(p.output, e.Output)
		}
		return false
	}
	o := p.outcome(e.Test)
	switch e.Action {
	case "output":
		o.output = append(o.output, e.Output)
	case "pass", "fail", "skip":
		o.action = e.Action
		p.progress(e, o)
	}
	return false
}

func (p *tally) outcome(test string) *outcome {
	o := p.tests[test]
	if o == nil {
		o = &outcome{}
		p.tests[test] = o
		p.order = append(p.order, test)
		if parent, ok := parentOf(test); ok {
			p.outcome(parent).children = true
		}
	}
	return o
}

// parentOf makes the seeds of a fuzz target part of it: they are inputs, not tests.
func parentOf(test string) (string, bool) {
	i := strings.LastIndexByte(test, '/')
	if i < 0 {
		return "", false
	}
	return test[:i], !strings.HasPrefix(test, "Fuzz")
}

// slowTest is worth a line of its own, so that a long suite is seen to move.
const slowTest = 2.0

func (p *tally) progress(e event, o *outcome) {
	top := !strings.Contains(e.Test, "/")
	switch {
	case e.Action == "fail":
		fmt.Fprintf(p.out, "--- FAIL %s %s (%.1fs)\n%s", p.name, e.Test, e.Elapsed, strings.Join(o.output, ""))
	case p.verbose, top && e.Elapsed >= slowTest:
		fmt.Fprintf(p.out, "     %-4s %s (%.1fs)\n", e.Action, e.Test, e.Elapsed)
	}
}

// count counts leaves. A test that never ended has failed (a panic, a timeout);
// a parent counts only if it failed by itself; a package that failed without a
// failed test (it does not build, TestMain exits) counts as one.
func (p *tally) count(packageFailed bool) total {
	var t total
	for _, name := range p.order {
		o := p.tests[name]
		if strings.HasPrefix(name, "Fuzz") && strings.Contains(name, "/") {
			continue
		}
		failed := o.action == "fail" || o.action == ""
		switch {
		case o.children && !(failed && !p.failedBelow(name)):
		case failed:
			t.failed++
		case o.action == "skip":
			t.skipped++
		default:
			t.passed++
		}
	}
	if packageFailed && t.failed == 0 {
		t.failed++
	}
	return t
}

func (p *tally) failedBelow(parent string) bool {
	return slices.ContainsFunc(p.order, func(name string) bool {
		action := p.tests[name].action
		return strings.HasPrefix(name, parent+"/") && (action == "fail" || action == "")
	})
}

// skips names each skipped test with its reason, the last line that it logged.
func (p *tally) skips() []string {
	var out []string
	for _, name := range p.order {
		o := p.tests[name]
		if o.action != "skip" || o.children {
			continue
		}
		reason := "no reason given"
		for _, line := range o.output {
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") && line != "" {
				reason = line
			}
		}
		out = append(out, strings.TrimPrefix(p.name, "kurabe/")+" "+name+": "+reason)
	}
	return out
}

var (
	place  = regexp.MustCompile(`^\s*\w+\.go:\d+: `)
	inTest = regexp.MustCompile(`^\w+_test\.go:\d+: `)
)

// failedMark begins the line of a failed test, before what it said.
const failedMark = "failed: "

// unsteadyMark replaces it where the test passed when it was run again, alone.
const unsteadyMark = "failed beside others, passed alone: "

// Bounds of what the summary repeats of a failed test.
const (
	maxReasons    = 6
	maxReasonSize = 400
	// Of a message of many lines: its beginning, and its end, which is often that of a log.
	maxHeadLines = 12
	maxTailLines = 25
)

// failures names each failed test with the last that it said of places in the code:
// whoever has only the end of the output must find the reason there.
func (p *tally) failures() []string {
	var out []string
	for _, name := range p.order {
		o := p.tests[name]
		if o.action != "fail" && o.action != "" || o.children && p.failedBelow(name) {
			continue
		}
		var reasons []string
		var more []string // of the last of them
		for _, line := range o.output {
			short := "  " + cut(strings.TrimSpace(line))
			switch {
			case place.MatchString(line):
				reasons, more = append(reasons, short), nil
			case len(reasons) > 0 && strings.HasPrefix(line, "        "):
				more = append(more, "  "+short)
			}
		}
		out = append(out, failedMark+strings.TrimPrefix(p.name, "kurabe/")+" "+name)
		out = append(out, reasons[max(0, len(reasons)-maxReasons):]...)
		out = append(out, shorten(more)...)
	}
	return out
}

func cut(line string) string {
	return line[:min(len(line), maxReasonSize)]
}

// shortly is a line for each of the failures, with the last place in the code that
// the test spoke of: what was meant to be true, without what servers logged.
func shortly(failures []string) []string {
	var lines []string
	for _, f := range failures {
		switch name, isName := strings.CutPrefix(f, failedMark); {
		case isName:
			lines = append(lines, "FAIL "+name)
		case place.MatchString(f) && len(lines) > 0:
			name, before, _ := strings.Cut(lines[len(lines)-1], ": ")
			if inTest.MatchString(before) && !inTest.MatchString(strings.TrimSpace(f)) {
				continue // a helper's look at what is left, after the failure
			}
			lines[len(lines)-1] = name + ": " + strings.TrimSpace(f)
		}
	}
	return lines
}

// shorten leaves the beginning and the end of many lines.
func shorten(lines []string) []string {
	left := len(lines) - maxHeadLines - maxTailLines
	if left <= 1 {
		return lines
	}
	return slices.Concat(lines[:maxHeadLines], []string{fmt.Sprintf("    … %d lines", left)}, lines[len(lines)-maxTailLines:])
}

// packageOutput is what belongs to no finished test: a panic, a timeout, TestMain.
func (p *tally) packageOutput() string {
	lines := slices.Clone(p.output)
	for _, name := range p.order {
		if o := p.tests[name]; o.action == "" {
			lines = append(lines, o.output...)
		}
	}
	return strings.Join(lines, "")
}
