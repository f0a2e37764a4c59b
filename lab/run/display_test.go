package run

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"kurabe/lab/dial"
	"kurabe/lab/result"
	"kurabe/lab/result/resulttest"
	"kurabe/lab/study"
)

// Without a terminal each trial leaves one line, and nothing that moves a cursor.
func TestDisplayForALog(t *testing.T) {
	var out strings.Builder
	say := Display(&out, false)
	cell := study.Cell{Variant: "file", Workload: "own"}
	say(Progress{Stage: "check"})
	say(Progress{Stage: "trial", Block: 1, Blocks: 6, Trial: 1, Trials: 24, Cell: cell})
	say(Progress{Stage: "trial", Block: 1, Blocks: 6, Trial: 1, Trials: 24, Cell: cell, Status: result.StatusOK, Left: time.Minute})
	say(Progress{Stage: "trial", Block: 1, Blocks: 6, Trial: 2, Trials: 24, Cell: cell, Status: result.StatusFailed, Reason: "gone"})
	want := "checking the target\nblock 1 of 6, trial 1 of 24, about 1m0s left: file under own: ok\nblock 1 of 6, trial 2 of 24: file under own: failed (gone)\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// On a terminal what stands is drawn over, and takes one line whatever its length.
func TestDisplayForATerminal(t *testing.T) {
	var out strings.Builder
	say := Display(&out, true)
	say(Progress{Stage: "trial", Block: 1, Blocks: 6, Trial: 1, Trials: 24, Cell: study.Cell{Variant: strings.Repeat("long", 40), Workload: "own"}})
	first := out.String()
	if strings.Count(first, "\n") != 1 || len([]rune(first)) > usualColumns {
		t.Errorf("%q", first)
	}
	say(Progress{Stage: "clean"})
	if rest := strings.TrimPrefix(out.String(), first); !strings.HasPrefix(rest, "\x1b[1A\x1b[2K") {
		t.Errorf("%q is not drawn over", rest)
	}
}

// After a block a log has one line, and a terminal a line for each variant, the first one
// with its interval.
func TestDisplayOfABlock(t *testing.T) {
	f := resulttest.File(7, resulttest.Options{Alter: true, Blocks: 6, Clean: true})
	after := Progress{Stage: "block", Block: 6, Blocks: 12, File: f}
	var log strings.Builder
	Display(&log, false)(after)
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.HasPrefix(got, "block 6 of 12: writers-4, resp_p95@during/idle: add-index ") || strings.Contains(got, "\x1b") {
		t.Errorf("%q", got)
	}
	interval := regexp.MustCompile(`(?m)^  add-index  +[\d.]+ \[[\d.]+, [\d.]+\]$`)
	for lines, want := range map[int]int{24: 1 + 12, 8: 7, 4: 3} {
		var out strings.Builder
		d := &display{w: &out, terminal: true, size: func() (int, int) { return 80, lines }}
		d.say(after)
		drawn := out.String()
		if got := strings.Count(drawn, "\n"); got != want || !strings.HasPrefix(drawn, "block 6 of 12 is measured\n") {
			t.Errorf("%d lines: %d are drawn: %q", lines, got, drawn)
		}
		if lines > 4 && !interval.MatchString(drawn) {
			t.Errorf("%d lines: no interval of the first variant in %q", lines, drawn)
		}
		// The next trial takes all of it back and shows it again.
		d.say(Progress{Stage: "trial", Block: 7, Blocks: 12, Trial: 73, Trials: 144, Cell: study.Cell{Variant: "sham", Workload: "writers-4"}})
		again := strings.TrimPrefix(out.String(), drawn)
		if !strings.HasPrefix(again, strings.Repeat("\x1b[1A\x1b[2K", want)+"block 7 of 12, trial 73 of 144: sham under writers-4\n") || strings.Count(again, "\n") != want {
			t.Errorf("%d lines: %q", lines, again)
		}
	}
}

// A study that has no pair yet says so in both.
func TestDisplayWithoutAnEstimate(t *testing.T) {
	for _, terminal := range []bool{false, true} {
		var out strings.Builder
		Display(&out, terminal)(Progress{Stage: "block", Block: 1, Blocks: 6, File: resulttest.File(7, resulttest.Options{Blocks: -1})})
		if !strings.Contains(out.String(), "no estimate yet\n") {
			t.Errorf("%q", out.String())
		}
	}
}

func TestNewChange(t *testing.T) {
	w := study.Workload{Rows: 1000}
	for name, c := range map[string]struct {
		v    study.Variant
		want []string
	}{
		"none":              {study.Variant{}, nil},
		"of another engine": {study.Variant{Change: map[string][]string{study.MariaDB: {"x"}}}, nil},
		"of all":            {study.Variant{Change: map[string][]string{"": {"ALTER TABLE {table} ADD c int"}}}, []string{"ALTER TABLE lab_writers_1000 ADD c int"}},
		"of this engine":    {study.Variant{Change: map[string][]string{study.Postgres: {"a {table} {table}", "b"}}}, []string{"a lab_writers_1000 lab_writers_1000", "b"}},
	} {
		got := newChange(study.Postgres, c.v, w, dial.Server{})
		if (got == nil) != (c.want == nil) || got != nil && strings.Join(got.statements, ";") != strings.Join(c.want, ";") {
			t.Errorf("%s: %+v, want %v", name, got, c.want)
		}
	}
}
