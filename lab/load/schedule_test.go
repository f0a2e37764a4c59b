package load

import (
	"math"
	"testing"

	"kurabe/lab/study"
)

func take(rate float64, kind string, seed uint64, n int) []int64 {
	a := newArrivals(rate, kind, seed)
	var all []int64
	for range n {
		due, number, ok := a.next()
		if !ok || number != uint64(len(all)) {
			return nil
		}
		all = append(all, due)
	}
	return all
}

func TestConstantArrivalsDoNotDrift(t *testing.T) {
	all := take(3, study.ArrivalConstant, 1, 3_000_001)
	if all[0] != 0 || all[1] != 333333333 || all[3_000_000] != 1_000_000_000_000_000 {
		t.Errorf("%d, %d, %d", all[0], all[1], all[3_000_000])
	}
}

func TestPoissonArrivals(t *testing.T) {
	const n, rate = 200_000, 1000.0
	one, same, other := take(rate, study.ArrivalPoisson, 1, n), take(rate, study.ArrivalPoisson, 1, n), take(rate, study.ArrivalPoisson, 2, n)
	var sum, squares float64
	for i := range n {
		if one[i] != same[i] {
			t.Fatalf("arrival %d is not the same again", i)
		}
		gap := float64(one[i])
		if i > 0 {
			gap -= float64(one[i-1])
		}
		sum += gap
		squares += gap * gap
	}
	if one[0] == other[0] && one[1] == other[1] {
		t.Error("two seeds gave one schedule")
	}
	// Of exponential gaps mean and standard deviation are the same, here 1 ms; with
	// 200,000 of them, 1 % is four standard errors and more.
	mean := sum / n
	if deviation := math.Sqrt(squares/n - mean*mean); math.Abs(mean/1e6-1) > 0.01 || math.Abs(deviation/1e6-1) > 0.02 {
		t.Errorf("mean %g ns, deviation %g ns", mean, deviation)
	}
}

func TestArrivalsEnd(t *testing.T) {
	a := newArrivals(10, study.ArrivalConstant, 1)
	a.until.Store(200_000_000)
	for n := range 3 {
		if due, _, ok := a.next(); ok != (n < 2) {
			t.Errorf("arrival %d at %d: %v", n, due, ok)
		}
	}
}

func TestMixSpreads(t *testing.T) {
	seen := map[uint64]bool{}
	for n := range uint64(10_000) {
		seen[mix(n)>>40] = true // 24 bits: about 3 of 10,000 meet
	}
	if len(seen) < 9_980 {
		t.Errorf("%d different values of 10,000", len(seen))
	}
}
