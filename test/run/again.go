package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// maxAgain bounds the failures that are tried again: more of them are no accident of load.
const maxAgain = 6

// retry is a failed test of real servers that is run once more, alone, after all suites have
// ended. The lanes share two processors, so what fails beside others may only have waited for
// them; a failure alone is a failure. Decision 74.
type retry struct {
	name   string // as the summary names it
	failed int    // how many leaves failed in it
	run    func(*runner, context.Context) (total, error)
}

// testRun runs one test of a package again.
type testRun func(r *runner, ctx context.Context, pkg, test string) (total, error)

// retriesOf returns a retry for each top-level test that failed in a package. There is none
// where a test never ended: what stood behind it has not run at all.
func retriesOf(p *tally, run testRun) []retry {
	var of []retry
	for _, name := range p.order {
		switch o := p.tests[name]; {
		case o.action == "":
			return nil
		case o.action != "fail" || o.children && p.failedBelow(name):
			continue
		}
		top, _, _ := strings.Cut(name, "/")
		label := strings.TrimPrefix(p.name, "kurabe/") + " " + top
		if i := slices.IndexFunc(of, func(r retry) bool { return r.name == label }); i >= 0 {
			of[i].failed++
			continue
		}
		of = append(of, retry{label, 1, func(r *runner, ctx context.Context) (total, error) {
			return run(r, ctx, p.name, top)
		}})
	}
	return of
}

// runAgain runs the failed tests once more and corrects the totals by those that pass. The
// summary names these too, with what they said when they failed.
func (r *runner) runAgain(ctx context.Context, all *total) {
	again := r.retries
	if r.retries = nil; len(again) > maxAgain {
		return
	}
	for _, t := range again {
		if ctx.Err() != nil {
			return
		}
		fmt.Fprintf(r.out, "\n== again: %s, alone\n", t.name)
		c := *r
		c.skips, c.failures, c.again = nil, nil, nil
		got, err := t.run(&c, ctx)
		if err != nil || got.failed > 0 || got.passed == 0 {
			fmt.Fprintf(r.out, "FAIL again: %s: %v (%v)\n", t.name, got, err)
			continue
		}
		all.failed -= t.failed
		all.passed += t.failed
		r.failures = markUnsteady(r.failures, t.name)
	}
}

// markUnsteady changes the mark of a test's failures, or adds a line where they have none.
func markUnsteady(failures []string, test string) []string {
	found := false
	for i, f := range failures {
		if name, ok := strings.CutPrefix(f, failedMark); ok && (name == test || strings.HasPrefix(name, test+"/")) {
			failures[i], found = unsteadyMark+name, true
		}
	}
	if !found {
		failures = append(failures, unsteadyMark+test)
	}
	return failures
}
