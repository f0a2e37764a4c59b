package stat

import (
	"fmt"
	"math"
	"slices"
)

// Methods of a Ratio: the Hodges–Lehmann estimate in both, with the interval of the
// inverted signed-rank test or of the bootstrap.
const (
	MethodWalsh = "HL+walsh"
	MethodBCa   = "HL+BCa"
)

// bootstrapFrom is the number of pairs from which on the interval is bootstrapped, which
// asks for no symmetry. With fewer it is too narrow: in simulations an interval of 95 %
// covers 93.5 % with 20 pairs and 94 % with 24, where the exact one never falls below 95.
const bootstrapFrom = 20

// Ratio is how much larger a was than b, over pairs measured side by side: 1.02 is two
// percent more.
type Ratio struct {
	Estimate float64
	Interval Interval
	Pairs    int
	Method   string // MethodWalsh or MethodBCa; "" when CheckPairs refuses the pairs
}

// CheckPairs says what PairedRatio could not work with: lengths that differ, more than
// MaxPairs, or a value that is not a positive finite number, by the number of its pair,
// from 1. Which pairs to leave out is for the caller to decide, and to show.
func CheckPairs(a, b []float64) error {
	if len(a) != len(b) {
		return fmt.Errorf("pair values: %d of one and %d of the other", len(a), len(b))
	}
	if len(a) > MaxPairs {
		return fmt.Errorf("pair values: %d pairs, more than %d", len(a), MaxPairs)
	}
	for i := range a {
		for _, v := range []float64{a[i], b[i]} {
			if !(v > 0) || math.IsInf(v, 1) {
				return fmt.Errorf("pair values: pair %d has %v, which has no ratio", i+1, v)
			}
		}
	}
	return nil
}

// PairedRatio estimates a/b from the log-ratios of the pairs, so that a factor
// and its inverse weigh the same: the estimate is the Hodges–Lehmann one, its interval the
// exact signed-rank one below 20 pairs and a BCa bootstrap over pairs from 20 on. Pairs
// that CheckPairs refuses have the estimate NaN, no interval, and count as 0 pairs. The
// order of the pairs does not matter, and b/a gives the inverse of a/b.
func PairedRatio(a, b []float64, level float64) Ratio {
	if CheckPairs(a, b) != nil {
		return Ratio{Estimate: math.NaN(), Interval: noInterval()}
	}
	logs := logRatios(a, b)
	r, method := Interval{}, MethodWalsh
	if len(logs) < bootstrapFrom {
		r = SignedRankInterval(logs, level)
	} else {
		r, method = bca(logs, level, bootstrapResamples), MethodBCa
	}
	return Ratio{
		Estimate: math.Exp(HodgesLehmann(logs)), Pairs: len(a), Method: method,
		Interval: Interval{Low: math.Exp(r.Low), High: math.Exp(r.High), Level: r.Level},
	}
}

// logRatios are sorted. The difference of logarithms is used, since a/b may be too large
// or too small for a number where its logarithm is not.
func logRatios(a, b []float64) []float64 {
	logs := make([]float64, len(a))
	for i := range a {
		logs[i] = math.Log(a[i]) - math.Log(b[i])
	}
	slices.Sort(logs)
	return logs
}
