package run

import (
	"strings"
	"testing"
	"time"

	"kurabe/lab/dial"
	"kurabe/lab/result"
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
	if strings.Count(first, "\n") != 1 || len([]rune(first)) > 79 {
		t.Errorf("%q", first)
	}
	say(Progress{Stage: "clean"})
	if rest := strings.TrimPrefix(out.String(), first); !strings.HasPrefix(rest, "\x1b[1A\x1b[2K") {
		t.Errorf("%q is not drawn over", rest)
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
