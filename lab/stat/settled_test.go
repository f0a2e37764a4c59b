package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// series is 60 seconds with noise of deviation 1 on a level.
func series(rng *rand.Rand, with float64, level func(second int) float64) []float64 {
	out := correlated(rng, 60, with)
	for i := range out {
		out[i] = out[i]/noiseSD + level(i)
	}
	return out
}

// Each kind of warm-up is made 200 times. Shares are asserted with a wide margin, as what
// matters is which kinds are told apart.
func TestSettled(t *testing.T) {
	const runs, quiet = 200, 20
	flat := func(int) float64 { return 100 }
	periodic := func(period int, level func(phase float64) float64) func(int) float64 {
		return func(second int) float64 { return level(float64(second%period) / float64(period)) }
	}
	for _, c := range []struct {
		name        string
		with        float64 // correlation of neighbours
		level       func(int) float64
		least, most float64 // share that is settled
		from        [2]int  // where the middle one of these settled
	}{
		{"white noise", 0, flat, 0.93, 1, [2]int{0, 0}},
		{"noise that lasts for seconds", 0.5, flat, 0.85, 1, [2]int{0, 0}},
		{"step after 15 s", 0, func(s int) float64 { return 10 * float64(min(s/15, 1)) }, 0.9, 1, [2]int{15, 15}},
		{"small step after 15 s", 0, func(s int) float64 { return 2 * float64(min(s/15, 1)) }, 0.9, 1, [2]int{13, 17}},
		{"step down after 15 s", 0, func(s int) float64 { return -10 * float64(min(s/15, 1)) }, 0.9, 1, [2]int{15, 15}},
		{"step 10 s before the end", 0, func(s int) float64 { return 10 * float64(s/50) }, 0, 0.05, [2]int{}},
		{"two steps", 0, func(s int) float64 { return 10 * float64(min(s/10, 2)) }, 0.9, 1, [2]int{20, 20}},
		{"ramp", 0, func(s int) float64 { return float64(s) / 2 }, 0, 0.05, [2]int{}},
		{"ramp that ends after 30 s", 0, func(s int) float64 { return float64(min(s, 30)) }, 0.8, 1, [2]int{25, 35}},
		{"caches that fill", 0, func(s int) float64 { return -20 * math.Exp(-float64(s)/8) }, 0.7, 1, [2]int{10, 35}},
		{"saw-tooth of checkpoints, 10 s", 0, periodic(10, func(p float64) float64 { return 5 * p }), 0.95, 1, [2]int{0, 0}},
		{"saw-tooth of checkpoints, 20 s", 0, periodic(20, func(p float64) float64 { return 5 * p }), 0.9, 1, [2]int{0, 0}},
		{"saw-tooth as long as the series", 0, periodic(60, func(p float64) float64 { return 20 * p }), 0, 0.05, [2]int{}},
		{"one outlier", 0, func(s int) float64 {
			if s == 55 {
				return 1000
			}
			return 0
		}, 0.93, 1, [2]int{0, 0}},
	} {
		rng := rand.New(rand.NewPCG(15, 16))
		var starts []float64
		for range runs {
			if from, ok := Settled(series(rng, c.with, c.level), quiet); ok {
				starts = append(starts, float64(from))
			}
		}
		share := float64(len(starts)) / runs
		t.Logf("%-32s settled %3.0f %%, from second %v", c.name, 100*share, Median(starts))
		if share < c.least || share > c.most {
			t.Errorf("%s: settled in %v, want %v to %v", c.name, share, c.least, c.most)
		}
		if from := Median(starts); c.least > 0 && (from < float64(c.from[0]) || from > float64(c.from[1])) {
			t.Errorf("%s: from second %v, want %v", c.name, from, c.from)
		}
	}
}

// Where nothing happens a shift is found in no more than 5 of 100 series.
func TestSettledFalseAlarms(t *testing.T) {
	const runs = 1000
	rng := rand.New(rand.NewPCG(17, 18))
	alarms := 0
	for range runs {
		if findShift(correlated(rng, 60, 0)) > 0 {
			alarms++
		}
	}
	t.Logf("false alarms in %d of %d series of white noise", alarms, runs)
	if alarms > runs*8/100 { // 5 % and four binomial errors of 0.7 %
		t.Errorf("%d of %d", alarms, runs)
	}
}

func TestSettledWithoutNoise(t *testing.T) {
	constant := slices.Repeat([]float64{3}, 60)
	dead := append(slices.Repeat([]float64{math.NaN()}, 20), constant...)
	late := slices.Clone(constant)
	late[59] = 1000
	for name, c := range map[string]struct {
		points []float64
		quiet  int
		from   int
		ok     bool
	}{
		"constant":                     {constant, 20, 0, true},
		"constant, as long as quiet":   {constant, 60, 0, true},
		"constant, shorter than quiet": {constant, 61, 0, false},
		"one outlier at the end":       {late, 20, 0, true},
		"no answers at first":          {dead, 20, 20, true},
		"nothing":                      {nil, 20, 0, false},
		"too short to scan":            {constant[:9], 1, 0, false},
		"no quiet asked for":           {constant[:10], 0, 0, true},
		"negative quiet":               {constant[:10], -1, 0, true},
		"longer than is looked at":     {slices.Repeat([]float64{3}, settledMost+100), 20, 100, true},
	} {
		if from, ok := Settled(c.points, c.quiet); from != c.from || ok != c.ok {
			t.Errorf("%s: from %d, %v, want %d, %v", name, from, ok, c.from, c.ok)
		}
	}
}
