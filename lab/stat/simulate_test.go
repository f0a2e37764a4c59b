package stat

import (
	"math"
	"math/rand/v2"
)

// A simulated study is a real one without servers: cells A, its twin A′ and B, once in
// every block, in an order that is shuffled anew for each block. Noise comes along the
// order of execution, so that trials that follow each other share what the machine does,
// and whatever the statistics make of it they see the metric of each trial alone.

// noise is the error of each trial as a logarithm, in the order of execution.
type noise func(rng *rand.Rand, trials int) []float64

const noiseSD = 0.05 // of the log of one trial

// noises by name. Each but the tailed one has about the standard deviation noiseSD.
var noises = map[string]noise{
	"log-normal": func(rng *rand.Rand, trials int) []float64 {
		return correlated(rng, trials, 0)
	},
	// Student's distribution with two degrees: its variance is infinite.
	"heavy tails": func(rng *rand.Rand, trials int) []float64 {
		out := make([]float64, trials)
		for i := range out {
			out[i] = noiseSD / 2 * rng.NormFloat64() / math.Sqrt(rng.ExpFloat64())
		}
		return out
	},
	// A slow machine stays slow for some trials.
	"autocorrelated": func(rng *rand.Rand, trials int) []float64 {
		return correlated(rng, trials, 0.7)
	},
	// The disk fills: 50 % slower at the end than at the beginning.
	"drift": drifting(1.5),
}

// drifting adds a factor that grows along the study up to total.
func drifting(total float64) noise {
	return func(rng *rand.Rand, trials int) []float64 {
		out := correlated(rng, trials, 0)
		for i := range out {
			out[i] += math.Log(total) * float64(i) / float64(trials)
		}
		return out
	}
}

// correlated is an AR(1) series.
func correlated(rng *rand.Rand, trials int, with float64) []float64 {
	out := make([]float64, trials)
	last := rng.NormFloat64()
	for i := range out {
		last = with*last + math.Sqrt(1-with*with)*rng.NormFloat64()
		out[i] = noiseSD * last
	}
	return out
}

// cells of a block.
const (
	cellA = iota
	cellTwin
	cellB
	cells
)

// simulated is a study to be simulated.
type simulated struct {
	blocks int
	effect float64 // ratio of B to A
	noise  noise
	scale  float64 // of the noise; 0 for 1
	sorted bool    // without shuffling: always A, A′, B
}

// run gives the metric by cell and block.
func (s simulated) run(rng *rand.Rand) [cells][]float64 {
	if s.scale == 0 {
		s.scale = 1
	}
	errors := s.noise(rng, s.blocks*cells)
	var out [cells][]float64
	for block := range s.blocks {
		level := 100 * math.Exp(rng.NormFloat64()/5) // a seed of its own for each block
		order := rng.Perm(cells)
		if s.sorted {
			order = []int{cellA, cellTwin, cellB}
		}
		for position, cell := range order {
			metric := level * math.Exp(s.scale*errors[block*cells+position])
			if cell == cellB {
				metric *= s.effect
			}
			out[cell] = append(out[cell], metric)
		}
	}
	return out
}

// ratio is PairedRatio with as many resamples as the simulations can afford.
func ratio(a, b []float64, resamples int) Ratio {
	if len(a) < bootstrapFrom {
		return PairedRatio(a, b, 0.95)
	}
	logs := logRatios(a, b)
	i := bca(logs, 0.95, resamples)
	return Ratio{
		Estimate: math.Exp(HodgesLehmann(logs)), Pairs: len(a), Method: MethodBCa,
		Interval: Interval{Low: math.Exp(i.Low), High: math.Exp(i.High), Level: i.Level},
	}
}
