package stat

import (
	"math"
	"slices"
)

// MaxPairs bounds the pairs of one estimate: a study of 500 blocks of three trials of a
// minute takes more than a day. Time and memory grow with its square, 125,250 averages
// of pairs, and 2^-500, the chance of the rarest sum of ranks, is still a float64.
const MaxPairs = 500

// MinPairs is the fewest pairs with an interval at 95 %: five agree by chance once in 16
// times, six once in 32.
const MinPairs = 6

// Interval is a confidence interval. Level is the coverage: the exact one, at least what
// was asked for, of an inverted signed-rank test, the one asked for of a bootstrap; 0 when
// so few values allow no such interval.
type Interval struct{ Low, High, Level float64 }

// noInterval says that there is none.
func noInterval() Interval { return Interval{Low: math.NaN(), High: math.NaN()} }

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
// of symmetric values that one wild value does not move far. NaN of none and of more than
// MaxPairs.
func HodgesLehmann(values []float64) float64 {
	if len(values) > MaxPairs {
		return math.NaN()
	}
	return Median(walsh(values))
}

// SignedRankInterval inverts the Wilcoxon signed-rank test, exactly: its ends are
// Walsh averages. With fewer than 6 values there is no interval at 95 %, nor with more
// than MaxPairs.
func SignedRankInterval(values []float64, level float64) Interval {
	if len(values) > MaxPairs || !(level > 0 && level < 1) {
		return noInterval()
	}
	means := walsh(values)
	skip, tail := lowerTail(len(values), (1-level)/2)
	if skip == 0 {
		return noInterval()
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

// signedRank is the distribution of the signed-rank statistic of n values.
func signedRank(n int) []float64 {
	ranks := make([]int, n)
	for i := range ranks {
		ranks[i] = i + 1
	}
	return sumOfSome(ranks)
}

// sumOfSome is the distribution of the sum of the weights, each of which is in it or not
// with even chances: element s is the chance of the sum s.
func sumOfSome(weights []int) []float64 {
	total := 0
	for _, weight := range weights {
		total += weight
	}
	chances := make([]float64, total+1)
	chances[0] = 1
	top := 0
	for _, weight := range weights {
		top += weight
		for s := top; s >= 0; s-- {
			chances[s] /= 2
			if s >= weight {
				chances[s] += chances[s-weight] / 2
			}
		}
	}
	return chances
}
