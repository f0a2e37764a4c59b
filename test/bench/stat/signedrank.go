package stat

import (
	"math"
	"slices"
)

// Interval is a confidence interval. Level is the exact coverage, which is at
// least what was asked for; 0 when so few values allow no such interval.
type Interval struct{ Low, High, Level float64 }

// walsh are the means of all pairs, each value with itself too, sorted.
func walsh(values []float64) []float64 {
	means := make([]float64, 0, len(values)*(len(values)+1)/2)
	for i, a := range values {
		for _, b := range values[i:] {
			means = append(means, (a+b)/2)
		}
	}
	slices.Sort(means)
	return means
}

// HodgesLehmann is the median of the Walsh averages: an estimate of the middle
// of symmetric values that one wild value does not move far.
func HodgesLehmann(values []float64) float64 { return Median(walsh(values)) }

// SignedRankInterval inverts the Wilcoxon signed-rank test, exactly: its ends are
// Walsh averages. With fewer than 6 values there is no interval at 95 %.
func SignedRankInterval(values []float64, level float64) Interval {
	means := walsh(values)
	skip, tail := lowerTail(len(values), (1-level)/2)
	if skip == 0 {
		return Interval{Low: math.NaN(), High: math.NaN()}
	}
	return Interval{Low: means[skip-1], High: means[len(means)-skip], Level: 1 - 2*tail}
}

// lowerTail returns the largest k for which P(W < k) is at most p, and that
// probability, W being the signed-rank statistic of n values; 0 when even P(W < 1)
// is larger.
func lowerTail(n int, p float64) (k int, tail float64) {
	sum := 0.0
	for w, probability := range signedRank(n) {
		if sum+probability > p {
			return w, sum
		}
		sum += probability
	}
	return 0, 0 // only without values, where the sum is certain
}

// signedRank is the distribution of the signed-rank statistic: each rank from 1
// to n is in the sum or not, with even chances.
func signedRank(n int) []float64 {
	chances := make([]float64, n*(n+1)/2+1)
	chances[0] = 1
	top := 0
	for rank := 1; rank <= n; rank++ {
		top += rank
		for w := top; w >= 0; w-- {
			chances[w] /= 2
			if w >= rank {
				chances[w] += chances[w-rank] / 2
			}
		}
	}
	return chances
}

// Ratio is how much larger a was than b, over pairs measured side by side.
type Ratio struct {
	Estimate float64
	Interval Interval
	Pairs    int
}

// PairedRatio estimates a/b from the log-ratios of the pairs, so that a factor
// and its inverse weigh the same. All values are positive.
func PairedRatio(a, b []float64, level float64) Ratio {
	logs := make([]float64, len(a))
	for i := range a {
		logs[i] = math.Log(a[i] / b[i])
	}
	r := SignedRankInterval(logs, level)
	return Ratio{
		Estimate: math.Exp(HodgesLehmann(logs)), Pairs: len(a),
		Interval: Interval{Low: math.Exp(r.Low), High: math.Exp(r.High), Level: r.Level},
	}
}
