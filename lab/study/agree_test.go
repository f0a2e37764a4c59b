package study_test

import (
	"slices"
	"testing"

	"kurabe/lab/load"
	"kurabe/lab/result"
	"kurabe/lab/study"
)

// TestMetricsAreKnown wants each metric that a study that comes with the lab names to be
// one that trials have.
func TestMetricsAreKnown(t *testing.T) {
	o := study.Options{CheckMetric: result.CheckMetric}
	for _, name := range study.Builtins() {
		t.Run(name, func(t *testing.T) {
			s, err := study.Builtin(name)
			if err != nil {
				t.Fatal(err)
			}
			if err := study.Check(s, o); err != nil {
				t.Error(err)
			}
		})
	}
	if _, err := study.Parse("template.yaml", study.Template(), o); err != nil {
		t.Error(err)
	}
}

// TestKitsAreThoseOfLoad: a study is checked where load must not be known, so the names
// are written twice.
func TestKitsAreThoseOfLoad(t *testing.T) {
	for _, generator := range []string{study.GeneratorOwn, study.GeneratorPgbench, study.GeneratorSysbench} {
		here, there := study.Kits(generator), load.Kits(generator)
		slices.Sort(here)
		slices.Sort(there)
		if !slices.Equal(here, there) {
			t.Errorf("%s has %v here and %v in load", generator, here, there)
		}
	}
}
