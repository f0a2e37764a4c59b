package stat

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// proofNoises are those of which the proof speaks: trials that follow each other are
// alike, the machine gets slower, and both at once.
var proofNoises = map[string]noise{
	"autocorrelated": noises["autocorrelated"],
	"drift":          noises["drift"],
	"both": func(rng *rand.Rand, trials int) []float64 {
		out := noises["drift"](rng, trials)
		for i, x := range noises["autocorrelated"](rng, trials) {
			out[i] += x
		}
		return out
	},
}

// proofStudies is how many studies the coverage is counted in: the exact interval of 6
// blocks is 0.1 % from the bar, and the share of 2,000 studies has a standard error of 0.4 %.
func proofStudies(blocks int) int {
	if blocks < bootstrapFrom {
		return 1_000_000
	}
	return 10_000
}

// BenchmarkProof reports how often the interval holds a ratio of 1.05, and how often a
// study tells two identical servers apart, in percent of simulated studies. Its chance is
// seeded, so that it reports the same figures everywhere; make bench prints them.
func BenchmarkProof(b *testing.B) {
	for _, blocks := range []int{6, 12, 24} {
		for kind, noise := range proofNoises {
			b.Run(fmt.Sprintf("blocks=%d/noise=%s", blocks, kind), func(b *testing.B) {
				for b.Loop() {
					rng := seededBy(fmt.Sprint(kind, blocks))
					many := proofStudies(blocks)
					b.ReportMetric(100*coveredOf(many, simulated{blocks: blocks, effect: 1.05, noise: noise}, rng), "covered-%")
					b.ReportMetric(float64(many), "studies")
					apart := 0
					for _, scale := range []float64{1, 0.3} { // deviations of 5 % and 1.5 % of a trial
						said := verdictsOf(simulated{blocks: blocks, effect: 1, noise: noise, scale: scale}, 0.03, HigherIsBetter, rng)
						apart = max(apart, said[Costs]+said[Improves])
					}
					b.ReportMetric(100*float64(apart)/studies, "told-apart-%")
				}
			})
		}
	}
}
