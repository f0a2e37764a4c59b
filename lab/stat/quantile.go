package stat

import (
	"math"
	"slices"
)

// Median is the middle value, or the mean of the two in the middle; NaN of none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	return middle(slices.Sorted(slices.Values(values)))
}

// middle is the median of values that are sorted, at least one.
func middle(s []float64) float64 {
	half := len(s) / 2
	if len(s)%2 == 1 {
		return s[half]
	}
	return (s[half-1] + s[half]) / 2
}

// Quantile is the nearest-rank quantile, q from 0 to 1: always a value that was
// observed, the smallest with at least a share q at or below it; NaN of none.
func Quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(q * float64(len(s))))
	return s[min(max(rank, 1), len(s))-1]
}

// Shift is the shift function: how much a lies above b at each of the quantiles qs, in
// the unit of both. a and b give the value at a quantile from 0 to 1, as those of a
// histogram do. It is 0 all along where only the order of the values differs, the same
// number where all of a came later by it, and rises at the end where only the tail did.
func Shift(a, b func(q float64) float64, qs []float64) []float64 {
	out := make([]float64, len(qs))
	for i, q := range qs {
		out[i] = a(q) - b(q)
	}
	return out
}
