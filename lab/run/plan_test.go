package run

import (
	"strings"
	"testing"
	"time"

	"kurabe/lab/study"
	"kurabe/lab/target"
)

// What cannot be had is neither counted nor priced, and each kind of target has a reset
// of its own.
func TestPlan(t *testing.T) {
	s, err := study.Builtin("audit")
	if err != nil {
		t.Fatal(err)
	}
	if s, err = study.ForEngine(s, study.Postgres); err != nil {
		t.Fatal(err)
	}
	s = study.WithTwin(s)
	all := NewPlan(s, target.KindPrivate, study.Postgres, nil)
	gone := s.Variants[len(s.Variants)-1].Name
	less := NewPlan(s, target.KindPrivate, study.Postgres, map[string]string{gone: "no package"})
	if want := all.Price.TrialsMax - len(s.Workloads)*s.Plan.BlocksMax; less.Price.TrialsMax != want || less.Price.TotalMax >= all.Price.TotalMax {
		t.Errorf("%d trials of %d without a variant, want %d", less.Price.TrialsMax, all.Price.TrialsMax, want)
	}
	if text := less.String(); !strings.Contains(text, "not measured: "+gone+": no package\n") || !strings.Contains(text, "A reset is taken for 1.5s: ") {
		t.Error(text)
	}
	if far := NewPlan(s, target.KindRDS, study.Postgres, nil); far.Price.TotalMin < time.Duration(far.Price.TrialsMin)*resetFar || far.loaded() != all.loaded() {
		t.Errorf("on Amazon's service: %s, a load of %s", far.Price.TotalMin, far.loaded())
	}
}

// MariaDB has no templates: the data of all workloads is sent again for each trial.
func TestResetOnAURL(t *testing.T) {
	s := &study.Study{Workloads: []study.Workload{
		{Name: "a", Generator: study.GeneratorOwn, Kit: "writers", Rows: 1_000_000}, {Name: "b", Generator: study.GeneratorOwn, Kit: "sysbench-like", Rows: 1_000_000},
	}}
	if copied := ResetOn(target.KindURL, s, study.Postgres); copied.Time != 5300*time.Millisecond || !strings.Contains(copied.Why, "476 MiB") {
		t.Errorf("copied: %+v", copied)
	}
	if filled := ResetOn(target.KindURL, s, study.MariaDB); filled.Time != 48200*time.Millisecond || !strings.Contains(filled.Why, "of all workloads") {
		t.Errorf("filled: %+v", filled)
	}
}

// Before a trial has ended the time left is as foretold, and from its reset on as that was.
func TestTimeLeft(t *testing.T) {
	s := &study.Study{Engines: []string{study.Postgres}, Plan: study.Plan{BlocksMin: 1, BlocksMax: 1, Measure: study.Duration(10 * time.Second)},
		Variants: []study.Variant{{Name: "a"}, {Name: "b"}}, Workloads: []study.Workload{{Name: "w", Mode: study.ModeClosed}}}
	var said []Progress
	r := &runner{Options: Options{Study: s, Say: func(p Progress) { said = append(said, p) }}, engine: study.Postgres, all: 2, done: 1}
	r.foretell(target.KindRDS)
	begins := r.progress(Progress{Stage: "trial"})
	if want := 2 * (resetFar + 10*time.Second); begins.Left != want {
		t.Errorf("%s left of a first trial and another, want %s", begins.Left, want)
	}
	x := &trial{runner: r}
	x.correct(20 * time.Second)
	x.correct(time.Hour) // a later one does not count: by then there are trials to go by
	if len(said) != 1 || said[0].Left != time.Minute {
		t.Errorf("after a reset of 20s: %+v", said)
	}
}
