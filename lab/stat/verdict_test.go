package stat

import (
	"math"
	"strings"
	"testing"
)

func TestJudge(t *testing.T) {
	of := func(low, high float64) Ratio {
		return Ratio{Estimate: math.Sqrt(low * high), Interval: Interval{Low: low, High: high, Level: 0.95}, Pairs: 12}
	}
	few, none, wide := of(1.2, 1.3), of(1.2, 1.3), of(1.2, 1.3)
	few.Pairs = MinPairs - 1
	none.Estimate = math.NaN()
	wide.Interval = noInterval()
	for name, c := range map[string]struct {
		in            Ratio
		margin        float64
		lower, higher Verdict // by what is better
	}{
		"far above":                   {of(1.05, 1.10), 0.03, Costs, Improves},
		"far below":                   {of(0.90, 0.95), 0.03, Improves, Costs},
		"within":                      {of(0.98, 1.02), 0.03, NoMaterialCost, NoMaterialCost},
		"certain, but small":          {of(1.01, 1.02), 0.03, NoMaterialCost, NoMaterialCost},
		"on the bounds":               {of(1/1.03, 1.03), 0.03, NoMaterialCost, NoMaterialCost},
		"over the upper bound":        {of(1.01, 1.05), 0.03, Undecided, Undecided},
		"over the lower bound":        {of(0.95, 0.99), 0.03, Undecided, Undecided},
		"over both":                   {of(0.90, 1.10), 0.03, Undecided, Undecided},
		"at the upper bound, outside": {of(1.03, 1.10), 0.03, Undecided, Undecided},
		"below 1/1.03, above 1-0.03":  {of(0.9701, 0.9708), 0.03, Improves, Costs},
		"margin 0, excludes 1":        {of(1.001, 1.002), 0, Costs, Improves},
		"margin 0, holds 1":           {of(0.999, 1.001), 0, Undecided, Undecided},
		"a negative margin is 0":      {of(1.001, 1.002), -0.5, Costs, Improves},
		"a margin that is none":       {of(1.2, 1.3), math.NaN(), Undecided, Undecided},
		"too few blocks":              {few, 0.03, DirectionOnly, DirectionOnly},
		"no interval":                 {wide, 0.03, DirectionOnly, DirectionOnly},
		"no estimate":                 {none, 0.03, Withheld, Withheld},
		"nothing at all":              {Ratio{}, 0.03, Withheld, Withheld},
	} {
		if got := Judge(c.in, c.margin, LowerIsBetter); got != c.lower {
			t.Errorf("%s, lower is better: %q, want %q", name, got, c.lower)
		}
		if got := Judge(c.in, c.margin, HigherIsBetter); got != c.higher {
			t.Errorf("%s, higher is better: %q, want %q", name, got, c.higher)
		}
	}
	if got := Judge(of(1.2, 1.3), 0.03, 0); got != Withheld {
		t.Errorf("without a direction: %q", got)
	}
}

func TestFloor(t *testing.T) {
	of := func(low, high float64, pairs int) Ratio {
		return Ratio{Estimate: math.Sqrt(low * high), Interval: Interval{Low: low, High: high, Level: 0.95}, Pairs: pairs}
	}
	for name, c := range map[string]struct {
		in    Ratio
		floor float64
		why   string // part of it; "" when there is a floor
	}{
		"alike":                  {of(0.99, 1.02, 6), 0.03, ""},
		"as wide as the margin":  {of(1/1.03, 1.03, 6), 0.03, ""},
		"ends at 1":              {of(1, 1.01, 6), 0.03, ""},
		"wider above":            {of(0.99, 1.04, 6), 0.04, ""},
		"wider below":            {of(1/1.05, 1.01, 6), 0.05, ""},
		"excludes 1 above":       {of(1.001, 1.02, 6), 0, "differ: ratio 1.001 to 1.020"},
		"excludes 1 below":       {of(0.98, 0.999, 6), 0, "differ: ratio 0.980 to 0.999"},
		"too few":                {of(0.99, 1.01, 5), 0, "only 5 blocks"},
		"no interval":            {Ratio{Estimate: 1, Interval: noInterval(), Pairs: 6}, 0, "no interval"},
		"no ratio":               {PairedRatio([]float64{0}, []float64{1}, 0.95), 0, "no ratio"},
		"never measured":         {PairedRatio(nil, nil, 0.95), 0, "no ratio"},
		"a ratio of zero values": {Ratio{}, 0, "only 0 blocks"},
	} {
		floor, ok, why := Floor(c.in, 0.03)
		if ok != (c.why == "") || !strings.Contains(why, c.why) || ok && why != "" || math.Abs(floor-c.floor) > 1e-9 {
			t.Errorf("%s: %v, %v, %q", name, floor, ok, why)
		}
	}
}

// TestOverTheFloor: a floor that is wider than the margin takes verdicts away, and gives
// none.
func TestOverTheFloor(t *testing.T) {
	of := func(low, high float64) Ratio {
		return Ratio{Estimate: math.Sqrt(low * high), Interval: Interval{Low: low, High: high, Level: 0.95}, Pairs: 12}
	}
	for name, c := range map[string]struct {
		in    Ratio
		floor float64
		want  Verdict
	}{
		"beyond the floor":                 {of(1.11, 1.2), 0.1, Costs},
		"beyond it on the other side":      {of(0.8, 0.9), 0.1, Improves},
		"beyond the margin, not the floor": {of(1.05, 1.2), 0.1, Undecided},
		"within the floor":                 {of(1.05, 1.09), 0.1, Undecided},
		"within the margin":                {of(0.99, 1.01), 0.1, Undecided},
		"a floor that is the margin":       {of(0.99, 1.01), 0.03, NoMaterialCost},
		"a floor below it":                 {of(1.04, 1.2), 0, Costs},
	} {
		if got := JudgeOver(c.in, 0.03, c.floor, LowerIsBetter); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
