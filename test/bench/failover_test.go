package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"kurabe/internal/harness"
)

// A bar holds each time, whatever the median says, and no row may be missing.
func TestFailoverRows(t *testing.T) {
	raw, err := os.Create(filepath.Join(t.TempDir(), "raw"))
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	rowsOf := func(seconds []float64, v harness.PulseVerdict) []row {
		r := &run{out: &report{raw: raw}}
		own := newTally("Kurabe", "", nil)
		for _, x := range losses {
			own.seen[x] = seconds
		}
		own.verdict = v
		r.failoverRows(own, nil, nil)
		return r.out.rows
	}
	for name, c := range map[string]struct {
		seconds []float64
		v       harness.PulseVerdict
		bars    string // verdict of the losses with a bar
		rows    string // and of the rows
	}{
		"all well":             {[]float64{0.2, 0.1, 0.3}, harness.PulseVerdict{Acked: 9}, meets, meets},
		"slow once":            {[]float64{0.2, 0.1, 11}, harness.PulseVerdict{Acked: 9}, misses, meets},
		"a row is missing":     {[]float64{0.2}, harness.PulseVerdict{Acked: 9, Missing: []int64{4}}, meets, misses},
		"a row is there twice": {[]float64{0.2}, harness.PulseVerdict{Acked: 9, Twice: []int64{4}}, meets, misses},
	} {
		lines := rowsOf(c.seconds, c.v)
		if len(lines) != len(losses)+1 {
			t.Fatalf("%s: %d rows", name, len(lines))
		}
		for n, x := range losses {
			want := ""
			if x.bar > 0 {
				want = c.bars
			}
			if lines[n].Verdict != want {
				t.Errorf("%s: %s is said to be %q, want %q", name, lines[n].What, lines[n].Verdict, want)
			}
		}
		if last := lines[len(losses)]; last.Verdict != c.rows {
			t.Errorf("%s: %s is said to be %q, want %q", name, last.What, last.Verdict, c.rows)
		}
	}
	if got, want := medianAndWorst([]float64{0.3, 0.1, 2}), "median 0.30 s, worst 2.00 s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestFailoverIsOffered(t *testing.T) {
	if !slices.ContainsFunc(parts, func(p part) bool { return slices.Contains(p.names, "failover") }) {
		t.Error("--only failover chooses nothing")
	}
}
