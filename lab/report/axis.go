package report

import (
	"math"
	"slices"
	"strconv"
)

// maxTicks bounds what any axis is asked for.
const maxTicks = 64

// finest is the shortest axis, as a share of its values, whose ticks a number can tell apart.
const finest = 1e-9

// axis maps values to pixels. From and To are pixels; To below From turns it round.
type axis struct {
	lo, hi   float64
	from, to float64
	log      bool
}

// at is where a value is, in pixels; values beyond the ends are put on them.
func (a axis) at(v float64) float64 {
	lo, hi := a.lo, a.hi
	if a.log {
		lo, hi, v = math.Log(lo), math.Log(hi), math.Log(v)
	}
	if hi == lo || math.IsNaN(v) {
		return a.from
	}
	share := min(1, max(0, (v-lo)/(hi-lo)))
	return a.from + share*(a.to-a.from)
}

// holds tells whether a value is between the ends.
func (a axis) holds(v float64) bool { return v >= a.lo && v <= a.hi }

// tick is a value with its label.
type tick struct {
	value float64
	label string
}

// linearTicks are about n multiples of 1, 2 or 5 times a power of ten within lo to hi.
func linearTicks(lo, hi float64, n int) []tick {
	n = min(max(n, 2), maxTicks)
	if !(hi > lo) || math.IsInf(hi-lo, 0) || hi-lo < finest*max(math.Abs(lo), math.Abs(hi)) {
		return nil
	}
	raw := (hi - lo) / float64(n)
	power := math.Pow(10, math.Floor(math.Log10(raw)))
	step := 10 * power
	for _, m := range []float64{1, 2, 5} {
		if m*power >= raw*0.75 {
			step = m * power
			break
		}
	}
	decimals := max(0, -int(math.Floor(math.Log10(step)+1e-9)))
	var out []tick
	for k := math.Ceil(lo/step - 1e-9); k*step <= hi+step*1e-9 && len(out) < maxTicks; k++ {
		out = append(out, tick{k * step, fixed(k*step, decimals)})
	}
	return out
}

// logTicks are 1, 2 and 5 times powers of ten within lo to hi; over many powers only
// the powers, and of very many every second, third, and so on.
func logTicks(lo, hi float64, n int) []tick {
	if !(hi > lo) || lo <= 0 || math.IsInf(hi, 0) {
		return nil
	}
	n = min(max(n, 2), maxTicks)
	if hi/lo < 4 {
		// Over less than that the scale is nearly even.
		if out := linearTicks(lo, hi, n); len(out) > 1 {
			return out
		}
		return linearTicks(lo, hi, 2*n)
	}
	first, last := int(math.Floor(math.Log10(lo))), int(math.Ceil(math.Log10(hi)))
	for _, multiples := range [][]float64{{1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 2, 5}, {1, 3}, {1}} {
		if out := powers(lo, hi, first, last, 1, multiples); len(out) <= n {
			if len(out) < 2 {
				return linearTicks(lo, hi, n) // too narrow for any round power
			}
			return out
		}
	}
	every := (last - first + n - 1) / n
	return powers(lo, hi, first, last, max(1, every), []float64{1})
}

func powers(lo, hi float64, first, last, every int, multiples []float64) []tick {
	var out []tick
	for k := first; k <= last; k += every {
		for _, m := range multiples {
			v := m * math.Pow10(k)
			if k < 0 {
				v = m / math.Pow10(-k) // 3/100 prints as 0.03, 3 × 0.01 may not
			}
			if v >= lo*(1-1e-9) && v <= hi*(1+1e-9) && len(out) < maxTicks {
				out = append(out, tick{v, given(v)})
			}
		}
	}
	return out
}

// changes are the round ratios that an axis of effects may show, from the coarsest choice
// to the finest: factors, then steps of a percentage around no change.
var changes = func() [][]float64 {
	all := [][]float64{
		{0.001, 0.01, 0.1, 1, 10, 100, 1000},
		{0.001, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000},
		{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100},
		{0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10},
	}
	const most = 12 // steps on either side
	for _, step := range []float64{50, 25, 20, 10, 5, 2, 1, 0.5, 0.2, 0.1, 0.05} {
		var set []float64
		for k := -most; k <= most; k++ {
			if p := 100 + float64(k)*step; p > 0 {
				set = append(set, p/100)
			}
		}
		all = append(all, set)
	}
	return all
}()

// changeTicks are the finest of changes whose labels, as wide as given, do not touch.
func changeTicks(a axis, labelPixels float64) []tick {
	best := []tick{{1, changeLabel(1)}}
	for _, set := range changes {
		var out []tick
		for _, v := range set {
			if a.holds(v) {
				out = append(out, tick{v, changeLabel(v)})
			}
		}
		if len(out) <= len(best) || !apart(a, out, labelPixels) {
			continue
		}
		best = out
	}
	return best
}

func apart(a axis, ticks []tick, gap float64) bool {
	for n := 1; n < len(ticks); n++ {
		if math.Abs(a.at(ticks[n].value)-a.at(ticks[n-1].value)) < gap {
			return false
		}
	}
	return true
}

// changeLabel is percent up to twice as high and down to a tenth, then a factor: +900 %
// is read as nine times by many.
func changeLabel(v float64) string {
	switch {
	case v == 1:
		return "0\u00a0%"
	case v > 2, v < 0.1:
		return "×" + given(v)
	}
	p := strconv.FormatFloat(math.Round((v-1)*1e4)/1e2, 'f', -1, 64)
	if v > 1 {
		p = "+" + p
	}
	return minus(p) + "\u00a0%"
}

// span is the range of the finite values, and whether there was one.
func span(values []float64) (lo, hi float64, ok bool) {
	values = slices.DeleteFunc(slices.Clone(values), func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
	if len(values) == 0 {
		return 0, 0, false
	}
	return slices.Min(values), slices.Max(values), true
}

// widen gives a range room on both sides, a share of its length; a log one by factors.
func widen(lo, hi, share float64, log bool) (float64, float64) {
	if log {
		f := math.Pow(hi/lo, share)
		f = max(f, 1.02)
		return lo / f, hi * f
	}
	d := (hi - lo) * share
	if d == 0 {
		d = max(math.Abs(hi)*share, 1e-9)
	}
	return lo - d, hi + d
}
