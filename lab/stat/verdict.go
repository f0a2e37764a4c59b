package stat

import (
	"fmt"
	"math"
)

// Direction says which way a metric is better.
type Direction int

// Directions. The zero value is neither, so that a forgotten one shows.
const (
	HigherIsBetter Direction = iota + 1 // throughput
	LowerIsBetter                       // latency, processor time, bytes written
)

// Verdict is what a study may say of a variant.
type Verdict string

// Verdicts.
const (
	Costs          Verdict = "costs"
	NoMaterialCost Verdict = "no material cost"
	Improves       Verdict = "improves"
	Undecided      Verdict = "undecided"
	DirectionOnly  Verdict = "direction only" // too few blocks for an interval
	Withheld       Verdict = "withheld"       // the twin failed, or there is no estimate
)

// Judge gives the verdict of the ratio of a variant to its baseline. Turned so that more
// is worse (r as it is when lower is better, 1/r when higher is), the margin m makes a band
// from 1/(1+m) to 1+m, as wide on both sides as a logarithm; 3 % of throughput is a fall
// to 1/1.03. Then the whole interval decides, never the estimate:
//
//	costs             it lies above 1+m
//	no material cost  it lies within the band, its bounds included
//	improves          it lies below 1/(1+m)
//	undecided         a bound of the band lies in it
//
// So with the margin 0 an interval that excludes 1 is a cost or an improvement, and an
// effect that is certain and smaller than the margin is no material cost. Direction only
// is the verdict below MinPairs pairs and where so few give no interval of the level.
// Withheld is that of an estimate that is no positive number, or of neither direction;
// that of a study whose twin failed is Floor's to say. A margin below 0 counts as 0.
func Judge(r Ratio, margin float64, d Direction) Verdict {
	i, ok := harm(r.Interval, d)
	switch {
	case !ok || !(r.Estimate > 0):
		return Withheld
	case r.Pairs < MinPairs || !(i.Low > 0 && i.Low <= i.High):
		return DirectionOnly
	case aboveMargin(i, margin):
		return Costs
	case withinMargin(i, margin):
		return NoMaterialCost
	case belowMargin(i, margin):
		return Improves
	}
	return Undecided
}

// harm turns an interval so that more is worse.
func harm(i Interval, d Direction) (Interval, bool) {
	switch d {
	case LowerIsBetter:
		return i, true
	case HigherIsBetter:
		return Interval{Low: 1 / i.High, High: 1 / i.Low, Level: i.Level}, true
	}
	return i, false
}

func upper(margin float64) float64 { return 1 + max(margin, 0) }

func aboveMargin(i Interval, margin float64) bool { return i.Low > upper(margin) }

func belowMargin(i Interval, margin float64) bool { return i.High < 1/upper(margin) }

func withinMargin(i Interval, margin float64) bool {
	return i.Low >= 1/upper(margin) && i.High <= upper(margin)
}

// JudgeOver is Judge in a study whose noise floor (see Floor) is known. Where the floor is
// wider than the margin, a cost or an improvement is one only beyond the floor, and nobody
// can say that there is none.
func JudgeOver(r Ratio, margin, floor float64, d Direction) Verdict {
	if !(floor > margin) {
		return Judge(r, margin, d)
	}
	if v := Judge(r, floor, d); v != NoMaterialCost {
		return v
	}
	return Undecided
}

// Floor is the difference that the study cannot tell from none, by the ratio of the
// baseline's twin to the baseline, which is 1: as far as the twin's interval reaches, and
// at least the margin; 0.05 for 5 %. Where the interval excludes 1, or there is none, the
// study says nothing at all: why is the reason, in words that go after "withheld: ". A
// perfect twin fails by chance as often as its interval misses, 3 to 5 times in 100.
func Floor(twin Ratio, margin float64) (floor float64, ok bool, why string) {
	i := twin.Interval
	switch {
	case math.IsNaN(twin.Estimate):
		return 0, false, "the baseline and its twin have no ratio"
	case twin.Pairs < MinPairs:
		return 0, false, fmt.Sprintf("only %d blocks have the baseline and its twin, and an interval takes %d", twin.Pairs, MinPairs)
	case !(i.Low > 0 && i.Low <= i.High):
		return 0, false, fmt.Sprintf("%d blocks give no interval of the baseline's twin at this level", twin.Pairs)
	case i.Low > 1 || i.High < 1:
		return 0, false, fmt.Sprintf("the baseline and its twin, the same recipe, differ: ratio %.3f to %.3f", i.Low, i.High)
	case withinMargin(i, margin):
		return max(margin, 0), true, ""
	}
	return max(i.High, 1/i.Low) - 1, true, ""
}
