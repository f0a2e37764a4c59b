package report

import (
	"math"
	"strings"
	"testing"
)

func labels(ticks []tick) string {
	var out []string
	for _, t := range ticks {
		out = append(out, t.label)
	}
	return strings.ReplaceAll(strings.Join(out, " "), "\u00a0%", "%")
}

func TestLinearTicks(t *testing.T) {
	for name, c := range map[string]struct {
		lo, hi float64
		n      int
		want   string
	}{
		"whole":      {0, 10, 5, "0 2 4 6 8 10"},
		"decimals":   {0.02, 0.31, 4, "0.1 0.2 0.3"},
		"thousands":  {0, 5200, 5, "0 1,000 2,000 3,000 4,000 5,000"},
		"negative":   {-0.2, 0.2, 4, "−0.2 −0.1 0.0 0.1 0.2"},
		"empty":      {3, 3, 5, ""},
		"infinite":   {0, math.Inf(1), 5, ""},
		"turned":     {5, 1, 5, ""},
		"not a span": {math.NaN(), 1, 5, ""},
	} {
		if got := labels(linearTicks(c.lo, c.hi, c.n)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestLogTicks(t *testing.T) {
	for name, c := range map[string]struct {
		lo, hi float64
		n      int
		want   string
	}{
		"one power":     {1, 10, 11, "1 1.5 2 3 4 5 6 7 8 9 10"},
		"two powers":    {0.5, 60, 8, "0.5 1 2 5 10 20 50"},
		"four powers":   {0.03, 300, 9, "0.03 0.1 0.3 1 3 10 30 100 300"},
		"many powers":   {1e-3, 1e9, 5, "0.001 1 1,000 1,000,000 1,000,000,000"},
		"less than one": {740, 1250, 5, "800 900 1,000 1,100 1,200"},
		"zero":          {0, 10, 5, ""},
		"turned":        {10, 1, 5, ""},
	} {
		if got := labels(logTicks(c.lo, c.hi, c.n)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestChangeTicks(t *testing.T) {
	for name, c := range map[string]struct {
		lo, hi float64
		want   string
	}{
		"costs":     {0.6, 1.04, "−40% −30% −20% −10% 0%"},
		"small":     {0.96, 1.04, "−4% −2% 0% +2% +4%"},
		"factors":   {0.9, 2000, "0% ×3 ×10 ×30 ×100 ×300 ×1,000"},
		"doubling":  {0.5, 2, "−50% −30% 0% +50% +100%"},
		"very fine": {0.998, 1.002, "−0.2% −0.1% 0% +0.1% +0.2%"},
	} {
		a := axis{lo: c.lo, hi: c.hi, from: 0, to: 440, log: true}
		ticks := changeTicks(a, 62)
		if got := labels(ticks); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if !apart(a, ticks, 62) {
			t.Errorf("%s: labels touch", name)
		}
	}
}

// Every axis has ticks that are within it, in order, and few.
func FuzzTicks(f *testing.F) {
	f.Add(0.5, 3.0, 5)
	f.Add(1e-9, 1e9, 8)
	f.Fuzz(func(t *testing.T, lo, hi float64, n int) {
		for _, ticks := range [][]tick{linearTicks(lo, hi, n), logTicks(lo, hi, n), changeTicks(axis{lo: lo, hi: hi, to: 400, log: true}, 60)} {
			if len(ticks) > maxTicks {
				t.Fatalf("%d ticks from %v to %v", len(ticks), lo, hi)
			}
			for k := 1; k < len(ticks); k++ {
				if !(ticks[k].value > ticks[k-1].value) {
					t.Fatalf("ticks of %v to %v are not in order: %v", lo, hi, ticks)
				}
			}
		}
	})
}

func TestAxis(t *testing.T) {
	a := axis{lo: 1, hi: 100, from: 0, to: 200, log: true}
	for v, want := range map[float64]float64{1: 0, 10: 100, 100: 200, 1000: 200, 0.1: 0} {
		if got := a.at(v); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v is at %v, want %v", v, got, want)
		}
	}
	if at := a.at(math.NaN()); at != 0 {
		t.Errorf("no number is at %v", at)
	}
}
