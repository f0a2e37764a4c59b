package stat

import (
	"math/rand/v2"
	"slices"
)

// Parameters of Settled.
const (
	// settledStretch is the fewest points on either side of a shift. A shift younger than
	// that is not seen; of fewer points an outlier would make one.
	settledStretch = 5
	// settledBlock points are permuted together, so that the likeness of neighbouring
	// seconds does not pass for a shift: with a correlation of 0.5 from one second to the
	// next a scan of 60 points cuts in 15 of 100 series, and in 47 when each is permuted
	// alone. Longer blocks miss shifts of their own length.
	settledBlock = 3
	// A shift is real when at most one in 20 of so many permutations shows as large a one.
	// A false alarm only makes a warm-up last longer, a missed shift spoils the trial, and
	// a warm-up is looked at every second until it settles: so the level is no lower.
	settledPermutations = 199
	settledLevel        = 0.05
	// settledMost bounds the work: an older start is not looked at. It is half an hour of
	// seconds, and costs a fraction of a second even for a stair that is cut step by step.
	settledMost = 2048
)

// Settled finds where a warm-up ended: points are medians, or any other figure, of equal
// bins of time, oldest first; ok when at least quiet points (and no fewer than 10) came
// since the last shift of their level, from is the index of the first of these. When not
// ok, from is that of the first point after the last shift that was found.
//
// The method is a change-point scan, repeated on what follows the shift that it found
// until none is left. A scan takes the ranks of the points, so that one outlier counts no
// more than any largest value, and for each division into two stretches of at least 5
// points Wilcoxon's rank sum, standardized; the largest is the shift, if at most 5 % of
// the permutations of the points (199, in blocks of 3, from a fixed seed) have as large a
// one. A level that goes up and down for ever, as by checkpoints, is not a shift once a
// few periods are there; one that is still in its first period is. A NaN, a bin without
// any value, ranks below all numbers.
func Settled(points []float64, quiet int) (from int, ok bool) {
	from = max(0, len(points)-settledMost)
	need := max(quiet, 2*settledStretch)
	for len(points)-from >= need {
		at := findShift(points[from:])
		if at == 0 {
			return from, true
		}
		from += at
	}
	return from, false
}

// findShift is the index of the first point after the largest shift, 0 when chance
// explains it.
func findShift(points []float64) int {
	ranks := doubledRanks(points)
	largest, at := largestShift(ranks)
	if at == 0 {
		return 0
	}
	blocks := slices.Collect(slices.Chunk(ranks, settledBlock))
	source := rand.NewPCG(uint64(len(points)), settledPermutations)
	asLarge := 1 // the order that was seen is one of the permutations
	for range settledPermutations {
		for i := len(blocks) - 1; i > 0; i-- {
			j := below(source, i+1)
			blocks[i], blocks[j] = blocks[j], blocks[i]
		}
		if shift, _ := largestShift(slices.Concat(blocks...)); shift >= largest {
			asLarge++
		}
	}
	if float64(asLarge) > settledLevel*(settledPermutations+1) {
		return 0
	}
	return at
}

// largestShift scans all divisions. The shift is the square of the standardized rank sum
// but for a factor that is the same for all permutations; at is 0 when the ranks are too
// few or all the same.
func largestShift(doubled []int) (shift float64, at int) {
	n, sum := len(doubled), 0
	for k, rank := range doubled[:max(0, n-settledStretch)] {
		sum += rank - (n + 1) // twice the mean rank
		first := k + 1
		if first < settledStretch {
			continue
		}
		if s := float64(sum) * float64(sum) / float64(first*(n-first)); s > shift {
			shift, at = s, first
		}
	}
	return shift, at
}
