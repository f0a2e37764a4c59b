package stat

import (
	"math"
	"slices"
)

// SignedRankP is the two-sided p-value of Wilcoxon's signed-rank test that the middle of
// the values, log-ratios of blocks, is 0. It is exact for every number of values up to
// MaxPairs, ties included: zeros are left out, equal sizes share the mean of their ranks,
// and the chances are those of the ranks as they are. It is 1 when nothing differs
// from 0; NaN when a value is not finite or there are too many.
func SignedRankP(logRatios []float64) float64 {
	if len(logRatios) > MaxPairs || slices.ContainsFunc(logRatios, notFinite) {
		return math.NaN()
	}
	sizes := make([]float64, 0, len(logRatios))
	positive := make([]bool, 0, len(logRatios))
	for _, v := range logRatios {
		if v != 0 {
			sizes, positive = append(sizes, math.Abs(v)), append(positive, v > 0)
		}
	}
	ranks := doubledRanks(sizes)
	up, down := 0, 0
	for i, rank := range ranks {
		if positive[i] {
			up += rank
		} else {
			down += rank
		}
	}
	tail := 0.0
	for _, chance := range sumOfSome(ranks)[:min(up, down)+1] {
		tail += chance
	}
	return min(1, 2*tail)
}

// Holm adjusts the p-values of tests that are made together, so that the chance of even
// one false alarm among them stays below the level that the results are compared with.
// They come in the order of p. A NaN is no test: it stays NaN and does not count.
func Holm(p []float64) []float64 {
	order := make([]int, 0, len(p))
	out := make([]float64, len(p))
	for i, v := range p {
		out[i] = v
		if !math.IsNaN(v) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int { return compare(p[i], p[j]) })
	least := 0.0 // an adjusted value is never below that of a smaller p
	for step, i := range order {
		least = max(least, min(1, float64(len(order)-step)*p[i]))
		out[i] = least
	}
	return out
}

func notFinite(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }
