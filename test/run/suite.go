package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

type total struct{ passed, failed, skipped int }

func (t *total) add(o total) {
	t.passed += o.passed
	t.failed += o.failed
	t.skipped += o.skipped
}

func (t total) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", t.passed, t.failed, t.skipped)
}

// errAbsent says that a suite has no test in this tree, or no use on this machine.
var errAbsent = errors.New("no tests found")

type suite struct {
	name, about string
	required    bool // absence is a failure: it must not vanish by a misspelt tag
	lane        int  // 0: it runs alone; lanes run at the same time, and in each one suite after the other
	run         func(*runner, context.Context) (total, error)
}

// The suites with real servers wait for a third of their time: three lanes of them left two
// cores idle as long. The four are meant to be equally long. What lint has to say waits for
// nobody, and fills what they leave. Studies measure: beside others they repeat their trials,
// and name the machine's processors as what limits a server.
var suites = []suite{
	{"unit", "pure tests and house rules", true, 0, (*runner).unit},
	{"lab", "studies of real servers", true, 0, func(r *runner, ctx context.Context) (total, error) {
		return r.tagged(ctx, "lab", "integration", isLab)
	}},
	{"integration", "real servers", true, 1, func(r *runner, ctx context.Context) (total, error) {
		return r.tagged(ctx, "integration", "integration", func(folder, test string) bool { return !isLab(folder, test) && !isEngine(folder, test) })
	}},
	{"unprivileged", "the tests of real servers without root", false, 1, (*runner).unprivileged},
	{"compat", "boto3 and the AWS CLI", true, 3, (*runner).compat},
	{"lint", "static checks", true, 4, (*runner).lint},
	{"engine", "each engine's servers, without the service", true, 4, func(r *runner, ctx context.Context) (total, error) {
		return r.tagged(ctx, "integration", "integration", isEngine)
	}},
	{"fault", "kill, freeze, cut, fill", false, 2, func(r *runner, ctx context.Context) (total, error) {
		return r.tagged(ctx, "fault", "fault", func(string, string) bool { return true })
	}},
}

// leaves is whose lines of left.txt are meant for the suite.
func (s suite) leaves() string {
	if s.name == "engine" {
		return "integration"
	}
	return s.name
}

// isEngine says whether a test is of an engine alone.
func isEngine(folder, _ string) bool { return strings.HasPrefix(folder, "./internal/engine/") }

// isLab says whether a test is of the lab: its packages, and those of the suite of real servers
// that run studies.
func isLab(folder, test string) bool {
	return strings.HasPrefix(folder, "./lab/") || strings.HasPrefix(test, "TestLab")
}

// lanes divides the suites into those that run alone, in order, and the lanes.
func lanes(of []suite) (alone []suite, lanes [][]suite) {
	byLane := map[int][]suite{}
	for _, s := range of {
		if s.lane == 0 {
			alone = append(alone, s)
		} else {
			byLane[s.lane] = append(byLane[s.lane], s)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(byLane)) {
		lanes = append(lanes, byLane[n])
	}
	return alone, lanes
}

// choose keeps the order of the table.
func choose(names []string) ([]suite, error) {
	if len(names) == 0 {
		return suites, nil
	}
	wanted := map[string]bool{}
	for _, n := range names {
		wanted[n] = true
	}
	var out []suite
	for _, s := range suites {
		if wanted[s.name] {
			out = append(out, s)
			delete(wanted, s.name)
		}
	}
	for n := range wanted {
		var known []string
		for _, s := range suites {
			known = append(known, s.name)
		}
		return nil, fmt.Errorf("no suite %q; there are %s", n, strings.Join(known, ", "))
	}
	return out, nil
}
