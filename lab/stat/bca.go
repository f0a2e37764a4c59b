package stat

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// bootstrapResamples: an end of a 95 % interval is then the 250th value from the end, and
// chance moves it by 250^½ = 16 ranks, about 0.03 standard errors of the estimate. With
// 24 blocks it takes 4 ms, with 500 a quarter of a second.
const bootstrapResamples = 9999

// pairMean is a Walsh average with the values that it is of, to be counted again in every
// resample without sorting again.
type pairMean struct {
	mean         float64
	first, other int32 // indexes; other is that of doubled weights, see weights
}

// hodgesLehmann computes estimates of resamples of the same values. A resample is told by
// how often each value is in it, and its estimate is the median of the Walsh averages of
// the values with the weight that this gives them: a walk along sorted averages where
// sorting them anew would take the logarithm of their number for each.
type hodgesLehmann struct {
	n     int
	means []pairMean
	// weights are by index: for i < n how often value i is there, c; n+i: 2c, which is the
	// weight of a pair with another value; 2n+i: c+1, that with itself, as c values make
	// c·(c+1)/2 such pairs. The product with the c of the first is twice the number of pairs.
	weights []int32
	// The walk begins at start, below nearly all estimates. The averages before it are, for
	// each value i, those with the values from i up to but not including until[i].
	start int
	until []int
	lower []int32 // how many values of the resample are those before each index
}

// newHodgesLehmann wants sorted values.
func newHodgesLehmann(values []float64) *hodgesLehmann {
	n := len(values)
	h := &hodgesLehmann{n: n, means: make([]pairMean, 0, n*(n+1)/2), weights: make([]int32, 3*n), until: make([]int, n), lower: make([]int32, n+1)}
	for i, a := range values {
		h.means = append(h.means, pairMean{mean: a, first: int32(i), other: int32(2*n + i)})
		for j := i + 1; j < n; j++ {
			h.means = append(h.means, pairMean{mean: (a + values[j]) / 2, first: int32(i), other: int32(n + j)})
		}
		h.until[i] = i
	}
	slices.SortStableFunc(h.means, func(a, b pairMean) int { return compare(a.mean, b.mean) })
	// Of normal values the averages lie in the middle so densely that one standard error of
	// the estimate is 0.28·n^1.5 of them; the walk begins two below.
	h.start = max(0, len(h.means)/2-int(0.56*math.Pow(float64(n), 1.5)))
	for _, m := range h.means[:h.start] {
		h.until[m.first]++
	}
	return h
}

// of is the estimate of the resample in which value i is counts[i] times.
func (h *hodgesLehmann) of(counts []int32) float64 {
	size := 0
	for i, c := range counts {
		size += int(c)
		h.weights[i], h.weights[h.n+i], h.weights[2*h.n+i] = c, 2*c, c+1
	}
	pairs := size * (size + 1) / 2
	target := 2 * ((pairs + 1) / 2) // the one in the middle, or the lower of two
	at, sum := h.start, h.before(counts)
	if sum >= target {
		at, sum = 0, 0
	}
	low, at, sum := h.walk(at, sum, target)
	high, _, _ := h.walk(at, sum, 2*(pairs/2+1))
	return (low + high) / 2
}

// before is the sum of the weights of the averages before start.
func (h *hodgesLehmann) before(counts []int32) int {
	for i, c := range counts {
		h.lower[i+1] = h.lower[i] + c
	}
	sum := 0
	for i, c := range counts {
		if until := h.until[i]; until > i {
			sum += int(c * (c + 1 + 2*(h.lower[until]-h.lower[i+1])))
		}
	}
	return sum
}

// walk goes on from an average and the sum of the weights before it to the first average
// with which the sum reaches target, and tells where it stopped; NaN when none does.
func (h *hodgesLehmann) walk(from int, sum, target int) (mean float64, at, before int) {
	for i, m := range h.means[from:] {
		after := sum + int(h.weights[m.first]*h.weights[m.other])
		if after >= target {
			return m.mean, from + i, sum
		}
		sum = after
	}
	return math.NaN(), len(h.means), sum
}

// bca is the bias-corrected and accelerated bootstrap interval (Efron 1987) of the
// Hodges–Lehmann estimate of sorted values, at least two. The values that are resampled
// are blocks, so nothing is assumed of what happens within one.
func bca(values []float64, level float64, resamples int) Interval {
	if !(level > 0 && level < 1) {
		return noInterval()
	}
	// The seed comes from the values, and those below 0 are turned over before and after,
	// so that the inverse ratio has the inverse interval.
	if HodgesLehmann(values) < 0 {
		turned := negated(values)
		i := bca(turned, level, resamples)
		return Interval{Low: -i.High, High: -i.Low, Level: i.Level}
	}
	h := newHodgesLehmann(values)
	n := len(values)
	counts := make([]int32, n)
	for i := range counts {
		counts[i] = 1
	}
	estimate := h.of(counts)
	acceleration := h.acceleration(counts)

	source := seeded(values)
	estimates := make([]float64, resamples)
	for r := range estimates {
		clear(counts)
		for range n {
			counts[below(source, n)]++
		}
		estimates[r] = h.of(counts)
	}
	slices.Sort(estimates)
	bias := normalQuantile(shareBelow(estimates, estimate))
	end := func(z float64) float64 {
		z += bias
		return normalChance(bias + z/max(1-acceleration*z, math.SmallestNonzeroFloat64))
	}
	z := normalQuantile((1 + level) / 2)
	last := float64(resamples + 1)
	low, high := int(math.Floor(end(-z)*last)), int(math.Ceil(end(z)*last))
	return Interval{
		Low:   estimates[min(max(low, 1), resamples)-1],
		High:  estimates[min(max(high, 1), resamples)-1],
		Level: level,
	}
}

// acceleration is a sixth of the skewness of the estimates that leave one value out; ones
// holds a 1 for every value. 0 when they are all the same.
func (h *hodgesLehmann) acceleration(ones []int32) float64 {
	without := make([]float64, h.n)
	mean := 0.0
	for i := range without {
		ones[i] = 0
		without[i] = h.of(ones)
		ones[i] = 1
		mean += without[i] / float64(h.n)
	}
	square, cube := 0.0, 0.0
	for _, v := range without {
		d := mean - v
		square += d * d
		cube += d * d * d
	}
	if square == 0 {
		return 0
	}
	return cube / (6 * math.Pow(square, 1.5))
}

// shareBelow is the share of the sorted estimates below the value, with half of those
// that equal it, and never 0 or 1, which have no normal quantile.
func shareBelow(sorted []float64, value float64) float64 {
	below, _ := slices.BinarySearch(sorted, value)
	upTo := below
	for upTo < len(sorted) && sorted[upTo] == value {
		upTo++
	}
	n := float64(len(sorted))
	return min(max(float64(below+upTo)/2, 0.5), n-0.5) / n
}

func negated(values []float64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[len(values)-1-i] = -v
	}
	return out
}

// seeded is chance that depends on the values alone. They are rounded to float32 first:
// the last bit of a logarithm differs between processors, and would give another
// sequence and visibly other figures.
func seeded(values []float64) *rand.PCG {
	hash := fnv.New64a()
	var word [4]byte
	for _, v := range values {
		binary.LittleEndian.PutUint32(word[:], math.Float32bits(float32(v)))
		hash.Write(word[:])
	}
	return rand.NewPCG(hash.Sum64(), uint64(len(values)))
}

// below is a number from 0 to n-1. It is made here of the generator's 64 bits, since only
// those are promised to stay the same; the bias is n in 2^64.
func below(source *rand.PCG, n int) int {
	high, _ := bits.Mul64(source.Uint64(), uint64(n))
	return int(high)
}
