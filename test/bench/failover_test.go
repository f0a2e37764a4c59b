package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// A loss over two hosts has its own bar, and beside it what a peer has seen of its like.
func TestHostRows(t *testing.T) {
	raw, err := os.Create(filepath.Join(t.TempDir(), "raw"))
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	far, peer := newTally("Kurabe", "", nil), newTally("P", "settings", nil)
	far.losses, far.where = hostLosses, "far away"
	bars := []string{"≤ 10 s, each time", "≤ 10 s, each time", "≤ 2 s, each time", "≤ 1 s, each time"}
	for n, x := range hostLosses {
		far.count(x, 1.5, harness.PulseVerdict{Acked: n + 1})
		peer.count(x.peer, float64(3*(n+1)), harness.PulseVerdict{Acked: n + 1})
	}
	r := &run{out: &report{raw: raw}}
	r.lossRows(far, nil, []*tally{peer})
	if want := 2*len(hostLosses) + 1; len(r.out.rows) != want {
		t.Fatalf("%d rows, want %d", len(r.out.rows), want)
	}
	for n, x := range hostLosses {
		own, beside := r.out.rows[2*n], r.out.rows[2*n+1]
		if want := verdict(n < 3); own.Bar != bars[n] || own.Verdict != want || !strings.HasSuffix(own.Note, "far away") {
			t.Errorf("%s: %+v, want %s %s", x.name, own, bars[n], want)
		}
		want := fmt.Sprintf("× %.1f and × %.1f of Kurabe's", float64(2*(n+1)), float64(2*(n+1)))
		if beside.Verdict != "" || !strings.HasSuffix(beside.What, "P on one machine") || !strings.HasSuffix(beside.Value, want) {
			t.Errorf("%s: %+v, want %s", x.name, beside, want)
		}
	}
	if last := r.out.rows[2*len(hostLosses)]; last.What != missingRows+" over two hosts" || last.Verdict != meets {
		t.Errorf("%+v", last)
	}
}

// Machines are made for a run that names them; without them a row says why, and no peer is
// struck for a comparison that there is not.
func TestHostsThatCannotBeHad(t *testing.T) {
	for only, reason := range map[string]string{"": "only with --only failover", "hosts": "which root alone can make", "create,failover": "which root alone can make"} {
		raw, err := os.Create(filepath.Join(t.TempDir(), "raw"))
		if err != nil {
			t.Fatal(err)
		}
		defer raw.Close()
		r := &run{settings: settings{Only: only}, out: &report{raw: raw}}
		l, err := r.openHosts(t.Context())
		if l != nil || err != nil {
			t.Fatal(l, err)
		}
		if len(r.out.rows) != 1 || r.out.rows[0].Value != notMeasured || !strings.Contains(r.out.rows[0].Note, reason) {
			t.Errorf("--only %q: rows %+v", only, r.out.rows)
		}
		if slices.Contains(r.peerLosses(), hostLost) {
			t.Errorf("--only %q: a peer loses a host for nothing", only)
		}
	}
}
