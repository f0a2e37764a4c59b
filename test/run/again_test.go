package main

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

func TestFailuresAreRunAgain(t *testing.T) {
	cases := []struct {
		name     string
		second   total
		err      error
		want     total
		failures string
	}{
		{"passes alone", total{passed: 2}, nil, total{3, 0, 0}, unsteadyMark + "p TestA/one"},
		{"fails again", total{failed: 1}, nil, total{2, 1, 0}, failedMark + "p TestA/one"},
		{"cannot run", total{}, errors.New("no program"), total{2, 1, 0}, failedMark + "p TestA/one"},
		{"is skipped", total{skipped: 1}, nil, total{2, 1, 0}, failedMark + "p TestA/one"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := &runner{out: io.Discard, again: func(_ *runner, _ context.Context, pkg, test string) (total, error) {
				if pkg != "kurabe/p" || test != "TestA" {
					t.Errorf("ran %s %s again", pkg, test)
				}
				return c.second, c.err
			}}
			all, err := r.consume(strings.NewReader(`
{"Action":"run","Package":"kurabe/p","Test":"TestA"}
{"Action":"run","Package":"kurabe/p","Test":"TestA/one"}
{"Action":"fail","Package":"kurabe/p","Test":"TestA/one"}
{"Action":"pass","Package":"kurabe/p","Test":"TestA/two"}
{"Action":"fail","Package":"kurabe/p","Test":"TestA"}
{"Action":"pass","Package":"kurabe/p","Test":"TestB"}
{"Action":"fail","Package":"kurabe/p"}`))
			if err != nil {
				t.Fatal(err)
			}
			r.runAgain(t.Context(), &all)
			if all != c.want {
				t.Errorf("totals %v, want %v", all, c.want)
			}
			if !slices.Contains(r.failures, c.failures) {
				t.Errorf("failures %q lack %q", r.failures, c.failures)
			}
		})
	}
}

func TestWhatIsNotRunAgain(t *testing.T) {
	none := func(*runner, context.Context, string, string) (total, error) {
		t.Error("a test was run again")
		return total{passed: 1}, nil
	}
	many := strings.Builder{}
	for n := range maxAgain + 1 {
		many.WriteString(`{"Action":"fail","Package":"p","Test":"Test` + string(rune('A'+n)) + `"}` + "\n")
	}
	for name, events := range map[string]string{
		"a panic":             `{"Action":"run","Package":"p","Test":"TestA"}` + "\n" + `{"Action":"fail","Package":"p"}`,
		"a package by itself": `{"Action":"pass","Package":"p","Test":"TestA"}` + "\n" + `{"Action":"fail","Package":"p"}`,
		"many failures":       many.String() + `{"Action":"fail","Package":"p"}`,
	} {
		t.Run(name, func(t *testing.T) {
			r := &runner{out: io.Discard, again: none}
			all, err := r.consume(strings.NewReader(events))
			before := all
			if r.runAgain(t.Context(), &all); err != nil || all != before || all.failed == 0 {
				t.Errorf("totals %v, then %v, %v", before, all, err)
			}
		})
	}
}

func TestFileOfAClass(t *testing.T) {
	for class, want := range map[string]string{
		"test.compat.test_backup":            "test/compat/test_backup.py",
		"test.compat.test_backup.TestBackup": "test/compat/test_backup.py",
	} {
		if got := fileOf(class); got != want {
			t.Errorf("fileOf(%s) = %s, want %s", class, got, want)
		}
	}
}
