package stat

import (
	"math"
	"testing"
)

// The table at the end of every textbook, two-sided.
func TestStudentQuantile(t *testing.T) {
	for _, c := range []struct {
		level   float64
		degrees int
		want    float64
	}{
		{.95, 1, 12.706}, {.95, 2, 4.303}, {.95, 3, 3.182}, {.95, 4, 2.776}, {.95, 5, 2.571}, {.95, 11, 2.201}, {.95, 23, 2.069},
		{.95, 30, 2.042}, {.95, 120, 1.980}, {.90, 10, 1.812}, {.99, 5, 4.032}, {.99, 1, 63.657}, {.999, 8, 5.041}, {.5, 7, 0.711},
	} {
		if got := studentQuantile(c.level, c.degrees); !near(got, c.want, 0.0006) {
			t.Errorf("level %v, %d degrees: %v, want %v", c.level, c.degrees, got, c.want)
		}
	}
}

func TestNormal(t *testing.T) {
	for p, want := range map[float64]float64{.5: 0, .975: 1.959963985, .025: -1.959963985, .84134474606854: 1} {
		if got := normalQuantile(p); !near(got, want, 1e-8) {
			t.Errorf("quantile %v: %v, want %v", p, got, want)
		}
		if got := normalChance(want); !near(got, p, 1e-8) {
			t.Errorf("chance %v: %v, want %v", want, got, p)
		}
	}
}

// The price list that a run prints, in percent.
func TestHalfwidthFor(t *testing.T) {
	for sd, want := range map[float64]map[int]float64{
		0.05: {6: 5.2, 12: 3.2, 24: 2.1},
		0.03: {6: 3.1, 12: 1.9, 24: 1.3},
	} {
		for pairs, percent := range want {
			if got := 100 * HalfwidthFor(sd, pairs); !near(got, percent, 0.06) {
				t.Errorf("deviation %v, %d pairs: ±%.2f %%, want ±%v %%", sd, pairs, got, percent)
			}
		}
	}
	for name, got := range map[string]float64{
		"one pair": HalfwidthFor(0.05, 1), "too many": HalfwidthFor(0.05, MaxPairs+1), "NaN": HalfwidthFor(math.NaN(), 6), "negative": HalfwidthFor(-1, 6),
	} {
		if !math.IsNaN(got) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestBlocksFor(t *testing.T) {
	for name, c := range map[string]struct {
		sd, halfwidth float64
		want          int
	}{
		"wide enough at once": {0.05, 0.1, MinPairs},
		"one more would do":   {0.05, 0.0318, 12},
		"no spread":           {0, 0.01, MinPairs},
		"hopeless":            {0.5, 0.001, MaxPairs},
		"nothing is as exact": {0.05, 0, MaxPairs},
		"NaN deviation":       {math.NaN(), 0.02, MaxPairs},
		"NaN width":           {0.05, math.NaN(), MaxPairs},
	} {
		if got := BlocksFor(c.sd, c.halfwidth); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	for _, halfwidth := range []float64{0.01, 0.02, 0.03, 0.04} {
		n := BlocksFor(0.05, halfwidth)
		if HalfwidthFor(0.05, n) > halfwidth || HalfwidthFor(0.05, n-1) <= halfwidth {
			t.Errorf("±%v: %d blocks are not the fewest", halfwidth, n)
		}
	}
}

func TestMoreBlocks(t *testing.T) {
	between := func(low, estimate, high float64, pairs int) Ratio {
		return Ratio{Estimate: estimate, Interval: Interval{Low: low, High: high, Level: 0.95}, Pairs: pairs}
	}
	for name, c := range map[string]struct {
		in        Ratio
		low, high int
	}{
		"decided: cost":        {between(1.1, 1.2, 1.3, 6), 0, 0},
		"decided: none":        {between(0.99, 1, 1.01, 6), 0, 0},
		"decided: improvement": {between(0.8, 0.85, 0.9, 6), 0, 0},
		"nothing yet":          {Ratio{Estimate: math.NaN()}, MinPairs, MinPairs},
		"two of six":           {between(math.NaN(), 1.1, math.NaN(), 2), 4, 4},
		// ±6 % of 6 blocks must become ±3 %, for which a quarter of the spread of a mean is
		// four times the blocks, less as t falls too.
		"no difference": {between(1/1.06, 1, 1.06, 6), 8, 16},
		"on the bound":  {between(0.98, 1.03, 1.08, 6), MaxPairs - 6, MaxPairs},
	} {
		if got := MoreBlocks(c.in, 0.03); got < c.low || got > c.high {
			t.Errorf("%s: %d more, want %d to %d", name, got, c.low, c.high)
		}
	}
}
