package stat

import (
	"math"
	"math/rand/v2"
	"testing"
)

// enumerated counts all 2^n choices of signs.
func enumerated(values []float64) float64 {
	var sizes []float64
	statistic := 0
	for _, v := range values {
		if v != 0 {
			sizes = append(sizes, math.Abs(v))
		}
	}
	ranks := doubledRanks(sizes)
	total := 0
	for i, k := 0, 0; i < len(values); i++ {
		if values[i] == 0 {
			continue
		}
		total += ranks[k]
		if values[i] > 0 {
			statistic += ranks[k]
		}
		k++
	}
	extreme := 0
	for choice := range 1 << len(ranks) {
		sum := 0
		for i, rank := range ranks {
			if choice>>i&1 == 1 {
				sum += rank
			}
		}
		if abs(2*sum-total) >= abs(2*statistic-total) {
			extreme++
		}
	}
	return float64(extreme) / float64(int(1)<<len(ranks))
}

func abs(n int) int { return max(n, -n) }

func TestSignedRankP(t *testing.T) {
	for name, c := range map[string]struct {
		in   []float64
		want float64
	}{
		// Of R's help page: wilcox.test(x, y, paired = TRUE, alternative = "greater") gives 0.01953.
		"Hollander and Wolfe": {[]float64{.952, -.147, 1.022, .43, .62, .59, .49, -.08, .01}, 0.0390625},
		"six agree":           {[]float64{1, 2, 3, 4, 5, 6}, 2.0 / 64},
		"six agree below":     {[]float64{-1, -2, -3, -4, -5, -6}, 2.0 / 64},
		"six the same":        {[]float64{1, 1, 1, 1, 1, 1}, 2.0 / 64},
		"zeros do not count":  {[]float64{0, 1, 0, 2, 3, 4, 5, 6}, 2.0 / 64},
		"nothing":             {nil, 1},
		"only zeros":          {[]float64{0, 0, 0}, 1},
		"balanced":            {[]float64{1, -1}, 1},
	} {
		if got := SignedRankP(c.in); !near(got, c.want, 1e-12) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if got := SignedRankP([]float64{1, bad}); !math.IsNaN(got) {
			t.Errorf("%v has the p-value %v", bad, got)
		}
	}
	if !math.IsNaN(SignedRankP(make([]float64, MaxPairs+1))) {
		t.Error("more than MaxPairs are taken")
	}
}

func TestSignedRankPAgainstEnumeration(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for range 300 {
		values := make([]float64, rng.IntN(11))
		for i := range values {
			values[i] = float64(rng.IntN(11) - 5) // ties and zeros
		}
		if got, want := SignedRankP(values), enumerated(values); !near(got, want, 1e-12) {
			t.Fatalf("%v: %v, want %v", values, got, want)
		}
	}
}

// The test and the interval are two sides of one thing.
func TestSignedRankPAndIntervalAgree(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for range 2000 {
		values := make([]float64, 6+rng.IntN(12))
		for i := range values {
			values[i] = rng.NormFloat64() + 0.5
		}
		i := SignedRankInterval(values, 0.95)
		excludes := i.Low > 0 || i.High < 0
		if p := SignedRankP(values); excludes != (p <= 0.05) {
			t.Fatalf("%v: p = %v, interval %+v", values, p, i)
		}
	}
}

func TestHolm(t *testing.T) {
	nan := math.NaN()
	for name, c := range map[string]struct{ in, want []float64 }{
		"none":                  {nil, nil},
		"one":                   {[]float64{.04}, []float64{.04}},
		"steps":                 {[]float64{.01, .04, .03, .005}, []float64{.03, .06, .06, .02}},
		"never above 1":         {[]float64{.7, .8}, []float64{1, 1}},
		"equal":                 {[]float64{.02, .02}, []float64{.04, .04}},
		"NaN does not count":    {[]float64{nan, .02, .5}, []float64{nan, .04, .5}},
		"never below a smaller": {[]float64{.02, .021, .9}, []float64{.06, .06, .9}},
	} {
		got := Holm(c.in)
		for i, want := range c.want {
			if !near(got[i], want, 1e-12) && !(math.IsNaN(got[i]) && math.IsNaN(want)) {
				t.Errorf("%s: %v, want %v", name, got, c.want)
				break
			}
		}
	}
}
