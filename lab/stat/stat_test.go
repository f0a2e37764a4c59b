package stat

import (
	"math"
	"math/rand/v2"
	"testing"
)

func near(a, b, tolerance float64) bool { return math.Abs(a-b) <= tolerance }

func TestMedian(t *testing.T) {
	for name, c := range map[string]struct {
		in   []float64
		want float64
	}{
		"one":  {[]float64{3}, 3},
		"odd":  {[]float64{9, 1, 5}, 5},
		"even": {[]float64{4, 1, 2, 100}, 3},
	} {
		if got := Median(c.in); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if !math.IsNaN(Median(nil)) || !math.IsNaN(Quantile(nil, .5)) {
		t.Error("nothing has a median")
	}
}

func TestQuantileIsNearestRank(t *testing.T) {
	ten := []float64{10, 9, 8, 7, 6, 5, 4, 3, 2, 1}
	for q, want := range map[float64]float64{0: 1, 0.5: 5, 0.9: 9, 0.95: 10, 0.99: 10, 1: 10} {
		if got := Quantile(ten, q); got != want {
			t.Errorf("quantile %v of 1..10 is %v, want %v", q, got, want)
		}
	}
	if ten[0] != 10 {
		t.Error("the input was sorted in place")
	}
}

// The published table of critical values, two-sided 5 %: the largest W that is
// still significant.
func TestSignedRankCriticalValues(t *testing.T) {
	for n, want := range map[int]int{
		6: 0, 7: 2, 8: 3, 9: 5, 10: 8, 11: 10, 12: 13, 13: 17, 14: 21, 15: 25, 16: 29, 17: 34, 18: 40, 19: 46, 20: 52,
	} {
		if k, tail := lowerTail(n, 0.025); k-1 != want || tail > 0.025 {
			t.Errorf("n=%d: critical value %d (tail %v), want %d", n, k-1, tail, want)
		}
	}
	for n := 1; n < 6; n++ {
		if i := SignedRankInterval(make([]float64, n), 0.95); i.Level != 0 || !math.IsNaN(i.Low) {
			t.Errorf("n=%d has an interval: %+v", n, i)
		}
	}
}

// Hamilton depression scores before and after a tranquilizer, from Hollander and
// Wolfe; R's wilcox.test(conf.int = TRUE) prints these figures for them.
func TestAgainstHollanderAndWolfe(t *testing.T) {
	before := []float64{1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30}
	after := []float64{0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29}
	d := make([]float64, len(before))
	for i := range d {
		d[i] = before[i] - after[i]
	}
	if got := HodgesLehmann(d); !near(got, 0.46, 1e-9) {
		t.Errorf("estimate %v, want 0.46", got)
	}
	i := SignedRankInterval(d, 0.95)
	if !near(i.Low, 0.010, 1e-9) || !near(i.High, 0.786, 1e-9) || !near(i.Level, 1-2*10.0/512, 1e-12) {
		t.Errorf("interval %+v, want 0.010 to 0.786 at 96.1 %%", i)
	}
}

func TestPairedRatio(t *testing.T) {
	a, b := []float64{110, 220, 55, 11, 330, 1100}, []float64{100, 200, 50, 10, 300, 1000}
	r := PairedRatio(a, b, 0.95)
	if !near(r.Estimate, 1.1, 1e-9) || !near(r.Interval.Low, 1.1, 1e-9) || !near(r.Interval.High, 1.1, 1e-9) || r.Pairs != 6 {
		t.Errorf("a constant factor of 1.1 became %+v", r)
	}
	if !near(r.Interval.Level, 0.96875, 1e-12) {
		t.Errorf("six pairs cover %v, want 31/32", r.Interval.Level)
	}
	back := PairedRatio(b, a, 0.95)
	if !near(back.Estimate, 1/r.Estimate, 1e-12) {
		t.Errorf("the inverse is %v", back.Estimate)
	}
}

// The interval holds the truth as often as it says.
func TestSignedRankCoverage(t *testing.T) {
	const runs, n = 4000, 8
	rng := rand.New(rand.NewPCG(1, 2))
	held := 0
	for range runs {
		values := make([]float64, n)
		for i := range values {
			values[i] = rng.NormFloat64()
		}
		if i := SignedRankInterval(values, 0.95); i.Low <= 0 && 0 <= i.High {
			held++
		}
	}
	want := 1 - 2*5.0/256
	if got := float64(held) / runs; !near(got, want, 0.012) { // 4 standard errors
		t.Errorf("coverage %v, want %v", got, want)
	}
}
