package result

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kurabe/lab/study"
)

// smallStudy has two variants and the twin, and one workload.
func smallStudy() Study {
	return Study{
		Format: Format, ID: "small-1", Created: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC), Seed: 7, Engine: study.Postgres, Target: "private",
		Command: []string{"kurabe", "lab", "run", "small"},
		Definition: study.Study{
			Name: "small", Question: "Is it <slow>?", Engines: []string{study.Postgres}, Baseline: "off",
			Primary: study.Primary{Metric: "tps", Margin: 0.03}, Metrics: []string{"resp_p95"},
			Variants:  []study.Variant{{Name: "off"}, {Name: "on"}, {Name: study.Twin("off"), TwinOf: "off"}},
			Workloads: []study.Workload{{Name: "w", Generator: study.GeneratorOwn, Mode: study.ModeClosed, Clients: 4}},
			Plan:      study.Plan{BlocksMin: 6, BlocksMax: 24, Measure: study.Duration(10 * time.Second)},
		},
	}
}

// okTrial answered that many transactions in ten seconds.
func okTrial(block int, variant string, transactions int64) Trial {
	return Trial{
		Block: block, Variant: variant, Workload: "w", Status: StatusOK,
		Phases: []Phase{{Name: PhaseMeasure, Ms: 10_000, Load: &Load{Transactions: transactions, Seconds: 10}}},
	}
}

// begin makes a file with a small study in it.
func begin(t testing.TB) (*Writer, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "small.jsonl")
	w, err := Create(path, smallStudy())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w, path
}

// chain makes a file of lines, each a JSON object without prev.
func chain(t testing.TB, lines ...string) string {
	t.Helper()
	var all strings.Builder
	prev := ""
	for _, line := range lines {
		line = strings.Replace(line, "{", `{"prev":"`+prev+`",`, 1)
		all.WriteString(line + "\n")
		prev = hash([]byte(line))
	}
	return all.String()
}

// lineOf is a record as a line without prev.
func lineOf(t testing.TB, kind string, record any) string {
	t.Helper()
	text, err := json.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	return `{"t":"` + kind + `",` + string(text[1:])
}
