package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Geometry of the percentile curves, in pixels.
const (
	curveTall  = 380.0
	curveLeft  = 64.0
	curveRight = 250.0 // names of the lines
	curveTop   = 14.0
	curveFoot  = 48.0
	labelGap   = 15.0 // between the names of two lines
	leastCurve = 3    // percentiles of each variant; fewer are in the tables
)

// percentileTicks are the percentiles that an axis of 1/(1-q) names.
var percentileTicks = []tick{
	{1, "0"}, {2, "50"}, {4, "75"}, {10, "90"}, {20, "95"}, {100, "99"}, {1000, "99.9"}, {10000, "99.99"}, {100000, "99.999"}, {1e6, "99.9999"},
}

// percentiles is the curve of response times of one workload, a line for each variant.
func (v *view) percentiles(id, workload string, all []distribution) (chart, bool) {
	farthest := 2.0
	var values []float64
	pooled := true
	for _, one := range all {
		for _, p := range one.curve() {
			farthest = max(farthest, 1/(1-p.q))
			values = append(values, p.ms)
		}
		pooled = pooled && one.pooled != nil
	}
	lo, hi, ok := span(values)
	if !ok || lo <= 0 || len(values) < leastCurve*len(all) {
		return chart{}, false
	}
	d := &drawing{wide: pageWide, tall: curveTall}
	x := axis{lo: 1, hi: farthest, from: curveLeft, to: pageWide - curveRight, log: true}
	lo, hi = widen(lo, hi, 0.05, true)
	y := axis{lo: lo, hi: hi, from: curveTall - curveFoot, to: curveTop, log: true}
	var ticks []tick
	for _, t := range percentileTicks {
		if x.holds(t.value) {
			ticks = append(ticks, t)
		}
	}
	d.frame(frame{x: x, y: y, xTicks: ticks, yTicks: logTicks(lo, hi, 10), xTitle: "percentile, as 1 / (1 − q) on a log scale", yTitle: "response time, ms, log scale"})
	var ends []lineEnd
	for _, one := range all {
		var line []point
		for _, p := range one.curve() {
			line = append(line, point{x.at(1 / (1 - p.q)), y.at(p.ms)})
		}
		look := one.variant.look
		d.hint("pt", one.variant.label)
		d.path(line, "ln "+look.class, look.dash)
		if one.pooled == nil {
			for _, p := range line {
				d.mark(look, p.x, p.y, 4, markSolid)
			}
		}
		d.endGroup()
		if len(line) > 0 {
			ends = append(ends, lineEnd{line[len(line)-1], one.variant.label, look})
		}
	}
	d.names(ends, x.to+14, curveTop, curveTall-curveFoot, curveRight-40)
	caption := fmt.Sprintf("All requests of all trials that count, pooled, up to where only %d lie beyond. Both scales are logarithmic.", tailSamples)
	if !pooled {
		caption = "The percentiles that the generator printed, medians over the trials that count; it gives no full distribution. Both scales are logarithmic."
	}
	return d.finish(id, "Response times · "+workload, caption), true
}

// lineEnd is where a line ends, to be named there.
type lineEnd struct {
	at    point
	label string
	look  look
}

// names writes the names of lines beside their ends, pushed apart where they would
// overlap, each with its mark and a thin line to where its line ends.
func (d *drawing) names(ends []lineEnd, x, top, bottom, wide float64) {
	slices.SortStableFunc(ends, func(a, b lineEnd) int { return cmp.Compare(a.at.y, b.at.y) })
	ys := make([]float64, len(ends))
	for n, e := range ends {
		ys[n] = max(e.at.y, top+6)
		if n > 0 {
			ys[n] = max(ys[n], ys[n-1]+labelGap)
		}
	}
	for n := len(ys) - 1; n >= 0; n-- {
		limit := bottom
		if n < len(ys)-1 {
			limit = ys[n+1] - labelGap
		}
		ys[n] = min(ys[n], limit)
	}
	for n, e := range ends {
		if math.Abs(ys[n]-e.at.y) > 1 || x-e.at.x > 20 {
			d.line(e.at.x+1, e.at.y, x+2, ys[n], "leader")
		}
		d.mark(e.look, x+9, ys[n], 4, markSolid)
		d.text(x+18, ys[n]+4, atStart, "name", cutPixels(e.label, wide, textSize))
	}
}
