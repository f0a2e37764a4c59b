package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// skewed are 24 pairs with a long tail on one side.
var skewed = [2][]float64{
	{103.2, 98.7, 110.4, 101.1, 99.6, 125.3, 104.8, 97.9, 100.6, 108.8, 102.3, 106.1, 99.1, 118.2, 101.9, 103.5, 95.4, 105.7, 100.2, 112.6, 104.1, 98.3, 107.4, 102.8},
	{100.0, 99.5, 101.2, 100.7, 98.2, 102.9, 101.3, 99.8, 100.1, 100.9, 97.6, 101.8, 100.4, 99.0, 102.2, 98.8, 100.5, 101.6, 99.3, 100.8, 98.1, 101.0, 99.9, 100.3},
}

// The figures are those of another implementation, which sorts the averages of each of
// 20,000 resamples anew.
func TestBCaAgainstAnotherImplementation(t *testing.T) {
	r := PairedRatio(skewed[0], skewed[1], 0.95)
	if !near(r.Estimate, 1.0329856536757265, 1e-12) || r.Method != MethodBCa || r.Pairs != 24 {
		t.Errorf("%+v", r)
	}
	if i := r.Interval; !near(i.Low, 1.0137, 0.0005) || !near(i.High, 1.0594, 0.001) || i.Level != 0.95 {
		t.Errorf("interval %+v, want 1.0137 to 1.0594", i)
	}
	logs := logRatios(skewed[0], skewed[1])
	ones := slices.Repeat([]int32{1}, len(logs))
	if a := newHodgesLehmann(logs).acceleration(ones); !near(a, 0.00958342123137623, 1e-9) {
		t.Errorf("acceleration %v", a)
	}
}

// A file that is computed again, in another order of its lines or the other way round,
// gives the same figures.
func TestBCaIsTheSameAgain(t *testing.T) {
	first := PairedRatio(skewed[0], skewed[1], 0.95)
	if again := PairedRatio(skewed[0], skewed[1], 0.95); again != first {
		t.Errorf("%+v, then %+v", first, again)
	}
	a, b := slices.Clone(skewed[0]), slices.Clone(skewed[1])
	slices.Reverse(a)
	slices.Reverse(b)
	if turned := PairedRatio(a, b, 0.95); turned != first {
		t.Errorf("another order gives %+v, want %+v", turned, first)
	}
	back := PairedRatio(b, a, 0.95)
	if !near(back.Interval.Low*first.Interval.High, 1, 1e-12) || !near(back.Interval.High*first.Interval.Low, 1, 1e-12) {
		t.Errorf("the inverse of %+v is %+v", first, back)
	}
}

func TestBCaOfConstantFactor(t *testing.T) {
	a, b := slices.Repeat([]float64{110}, 30), slices.Repeat([]float64{100}, 30)
	if r := PairedRatio(a, b, 0.95); !near(r.Interval.Low, 1.1, 1e-12) || !near(r.Interval.High, 1.1, 1e-12) {
		t.Errorf("%+v", r)
	}
}

// The walk along weighted averages finds what sorting them would.
func TestHodgesLehmannOfResamples(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		values := make([]float64, 1+rng.IntN(40))
		for i := range values {
			values[i] = float64(rng.IntN(20) - 10) // with ties
		}
		slices.Sort(values)
		counts := make([]int32, len(values))
		var resample []float64
		for range 1 + rng.IntN(60) {
			i := rng.IntN(len(values))
			counts[i]++
			resample = append(resample, values[i])
		}
		if got, want := newHodgesLehmann(values).of(counts), HodgesLehmann(resample); got != want {
			t.Fatalf("%v, %v times each: %v, want %v", values, counts, got, want)
		}
	}
}

func TestPairsThatHaveNoRatio(t *testing.T) {
	good := []float64{1, 2, 3, 4, 5, 6}
	for name, bad := range map[string][]float64{
		"zero": {1, 2, 0, 4, 5, 6}, "negative": {1, 2, -3, 4, 5, 6}, "NaN": {1, 2, math.NaN(), 4, 5, 6},
		"infinite": {1, 2, math.Inf(1), 4, 5, 6}, "shorter": {1, 2},
	} {
		for _, pairs := range [][2][]float64{{good, bad}, {bad, good}} {
			r := PairedRatio(pairs[0], pairs[1], 0.95)
			if CheckPairs(pairs[0], pairs[1]) == nil || !math.IsNaN(r.Estimate) || r.Interval.Level != 0 || r.Pairs != 0 || r.Method != "" {
				t.Errorf("%s: %+v", name, r)
			}
			if v := Judge(r, 0.03, LowerIsBetter); v != Withheld {
				t.Errorf("%s: verdict %q", name, v)
			}
		}
	}
	if CheckPairs(good, good) != nil {
		t.Error("good pairs are refused")
	}
	if many := slices.Repeat([]float64{1}, MaxPairs+1); CheckPairs(many, many) == nil {
		t.Error("more than MaxPairs are taken")
	}
	if most := slices.Repeat([]float64{1}, MaxPairs); PairedRatio(most, most, 0.95).Estimate != 1 {
		t.Error("MaxPairs pairs have no ratio")
	}
	// a/b is neither: its logarithm is.
	if r := PairedRatio(slices.Repeat([]float64{1e300}, 6), slices.Repeat([]float64{1e300}, 6), 0.95); r.Estimate != 1 {
		t.Errorf("large values: %+v", r)
	}
}
