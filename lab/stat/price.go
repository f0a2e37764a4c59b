package stat

import "math"

// priceLevel is the confidence of the price list.
const priceLevel = 0.95

// HalfwidthFor is how wide the 95 % interval of a ratio becomes, on either side, as a
// logarithm: 0.05 is about ±5 %. sdLog is the standard deviation of a block's log-ratio,
// as a study of a variant and its twin shows it. It is the arithmetic of the t-interval,
// to plan with before anything is measured: with 6 blocks the exact interval spans all
// the blocks and is a fifth wider. NaN below two pairs, above MaxPairs and of a deviation
// that is none.
func HalfwidthFor(sdLog float64, pairs int) float64 {
	if pairs < 2 || pairs > MaxPairs || !(sdLog >= 0) {
		return math.NaN()
	}
	return studentQuantile(priceLevel, pairs-1) * sdLog / math.Sqrt(float64(pairs))
}

// BlocksFor is the fewest blocks whose interval is that narrow (both as in
// HalfwidthFor), from MinPairs, below which there is no verdict, to MaxPairs, which
// stands for that many or more, and for what no number of blocks can do.
func BlocksFor(sdLog, halfwidth float64) int {
	low, high := MinPairs, MaxPairs // the answer, unless even MaxPairs is not enough
	for low < high {
		n := (low + high) / 2
		if HalfwidthFor(sdLog, n) <= halfwidth {
			high = n
		} else {
			low = n + 1
		}
	}
	return low
}

// MoreBlocks is about how many blocks an undecided study still lacks: as many as make the
// interval so narrow that it comes to lie on one side of the nearer bound of the margin,
// if the estimate stays where it is. 0 when it is decided; all that is left up to MaxPairs
// when the estimate lies on a bound. Without an interval, what is missing to MinPairs.
func MoreBlocks(r Ratio, margin float64) int {
	i := r.Interval
	if r.Pairs < MinPairs || !(i.Low > 0 && i.Low <= i.High) {
		return max(MinPairs-r.Pairs, 0)
	}
	if aboveMargin(i, margin) || withinMargin(i, margin) || belowMargin(i, margin) {
		return 0
	}
	pairs := min(r.Pairs, MaxPairs)
	halfwidth := math.Log(i.High/i.Low) / 2
	deviation := halfwidth / HalfwidthFor(1, pairs)
	bound := math.Log1p(max(margin, 0))
	target := math.Abs(math.Abs(math.Log(r.Estimate)) - bound)
	return min(max(BlocksFor(deviation, target)-r.Pairs, 1), MaxPairs)
}
