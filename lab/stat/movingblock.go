package stat

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Bounds of MovingBlock: the error bar of a chart needs no more resamples, and an hour of
// 100 ms bins is the longest series.
const (
	movingResamples = 999
	movingMost      = 36000
)

// MovingBlock is the interval of the mean of a series whose neighbours are alike, such as
// the seconds of a trial: a bootstrap of overlapping stretches of so many points (Künsch
// 1989), percentiles of the resampled means, centred on the mean of the series. It draws
// the error bar of one trial and nothing else: it knows nothing of how the next trial
// would differ, so it never narrows an interval between blocks, and of a few stretches
// only it is too narrow. No interval of an empty series, of more than 36,000 points, of
// one with a value that is not finite, or of a block that is not between 1 and its length.
func MovingBlock(series []float64, block int, level float64) Interval {
	n := len(series)
	if block < 1 || block > n || n > movingMost || !(level > 0 && level < 1) || slices.ContainsFunc(series, notFinite) {
		return noInterval()
	}
	sums := make([]float64, n+1) // of the points before each, from the mean
	mean := 0.0
	for _, v := range series {
		mean += v / float64(n)
	}
	for i, v := range series {
		sums[i+1] = sums[i] + v - mean
	}
	source := rand.NewPCG(uint64(n), uint64(block))
	means := make([]float64, movingResamples)
	drift := 0.0
	for r := range means {
		total := 0.0
		for left := n; left > 0; left -= block {
			take := min(block, left)
			start := below(source, n-block+1)
			total += sums[start+take] - sums[start]
		}
		means[r] = total / float64(n)
		drift += means[r] / movingResamples
	}
	// Points near the ends lie in fewer stretches; without this they would pull the bar
	// away from the mean that it belongs to.
	low, high := Quantile(means, (1-level)/2), Quantile(means, (1+level)/2)
	i := Interval{Low: mean + low - drift, High: mean + high - drift, Level: level}
	if math.IsNaN(i.Low) || math.IsNaN(i.High) {
		return noInterval() // the sums overflowed
	}
	return i
}
