package main

import (
	"context"
	"errors"
	"fmt"
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
	beside      bool // it runs at the same time as the next one: both mostly wait
	run         func(*runner, context.Context) (total, error)
}

var suites = []suite{
	{"lint", "static checks", true, false, (*runner).lint},
	{"unit", "pure tests and house rules", true, false, (*runner).unit},
	{"integration", "real servers", true, false, func(r *runner, ctx context.Context) (total, error) {
		return r.tagged(ctx, "integration")
	}},
	{"unprivileged", "the integration tests without root", false, false, (*runner).unprivileged},
	{"compat", "boto3 and the AWS CLI", true, true, (*runner).compat},
	{"fault", "kill, freeze, cut, fill", false, false, func(r *runner, ctx context.Context) (total, error) {
		return r.tagged(ctx, "fault")
	}},
}

// choose keeps the order of the table, which is from quick to slow.
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
