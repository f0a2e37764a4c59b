package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestMovingBlockOfConstant(t *testing.T) {
	if i := MovingBlock(slices.Repeat([]float64{7}, 60), 10, 0.95); !near(i.Low, 7, 1e-9) || !near(i.High, 7, 1e-9) || i.Level != 0.95 {
		t.Errorf("%+v", i)
	}
}

// Seconds that are alike make a mean less certain than their number says. Stretches see
// it, single points do not: both count how often the bar holds the true mean, 0.
func TestMovingBlockCoverage(t *testing.T) {
	const runs, points = 300, 600
	held := map[int]int{1: 0, 30: 0}
	rng := rand.New(rand.NewPCG(11, 12))
	for range runs {
		series := correlated(rng, points, 0.7)
		for block := range held {
			if i := MovingBlock(series, block, 0.95); i.Low <= 0 && 0 <= i.High {
				held[block]++
			}
		}
	}
	t.Logf("of %d bars %d hold the mean with stretches of 30 points, %d with single ones", runs, held[30], held[1])
	// 20 stretches cover about 92 %; single points understate the deviation 2.4 times and
	// cover about 59 %. The tolerance is four binomial errors.
	if got := float64(held[30]) / runs; got < 0.86 {
		t.Errorf("stretches cover %v", got)
	}
	if got := float64(held[1]) / runs; got > 0.72 {
		t.Errorf("single points cover %v: the simulated series are not alike enough to test anything", got)
	}
}

func TestMovingBlockIsTheSameAgain(t *testing.T) {
	series := correlated(rand.New(rand.NewPCG(13, 14)), 100, 0.5)
	if a, b := MovingBlock(series, 10, 0.95), MovingBlock(series, 10, 0.95); a != b || !(a.Low < a.High) {
		t.Errorf("%+v, then %+v", a, b)
	}
}

func TestMovingBlockRefuses(t *testing.T) {
	ten := make([]float64, 10)
	for name, i := range map[string]Interval{
		"nothing":      MovingBlock(nil, 1, 0.95),
		"block 0":      MovingBlock(ten, 0, 0.95),
		"long block":   MovingBlock(ten, 11, 0.95),
		"level 0":      MovingBlock(ten, 1, 0),
		"level NaN":    MovingBlock(ten, 1, math.NaN()),
		"NaN":          MovingBlock([]float64{1, math.NaN()}, 1, 0.95),
		"infinite":     MovingBlock([]float64{1, math.Inf(-1)}, 1, 0.95),
		"too long":     MovingBlock(make([]float64, movingMost+1), 10, 0.95),
		"out of range": MovingBlock([]float64{math.MaxFloat64, -math.MaxFloat64, math.MaxFloat64}, 1, 0.95),
	} {
		if i.Level != 0 || !math.IsNaN(i.Low) || !math.IsNaN(i.High) {
			t.Errorf("%s: %+v", name, i)
		}
	}
}

func TestShift(t *testing.T) {
	line := func(q float64) float64 { return 10 * q }
	for name, c := range map[string]struct {
		a    func(float64) float64
		want []float64
	}{
		"the same":       {line, []float64{0, 0, 0}},
		"all later by 3": {func(q float64) float64 { return line(q) + 3 }, []float64{3, 3, 3}},
		"only the tail": {func(q float64) float64 {
			if q > 0.9 {
				return 100
			}
			return line(q)
		}, []float64{0, 0, 90.1}},
	} {
		got := Shift(c.a, line, []float64{0.1, 0.5, 0.99})
		for i := range c.want {
			if !near(got[i], c.want[i], 1e-9) {
				t.Errorf("%s: %v, want %v", name, got, c.want)
			}
		}
	}
}
