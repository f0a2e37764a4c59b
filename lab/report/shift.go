package report

import (
	"fmt"
	"slices"

	"kurabe/lab/stat"
)

// shiftQuantiles are where the distributions are compared. The last is drawn only when
// every trial has the requests for it.
var shiftQuantiles = []float64{0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99}

// requestsForP99 is what a trial needs for a 99th percentile that 100 requests support.
const requestsForP99 = 10000

// Geometry of the shift functions, in pixels: small plots in rows of four.
const (
	shiftColumns = 4
	shiftLeft    = 52.0
	shiftWide    = pageWide / shiftColumns
	shiftTall    = 150.0
	shiftHead    = 26.0
	shiftFoot    = 46.0
)

// shifted is the difference of a variant's quantiles to the baseline's, ms.
type shifted struct {
	variant   variant
	q         []float64
	estimate  []float64
	low, high []float64 // nil without interval
	blocks    int
}

// shift compares at each quantile the trials of the same block.
func shift(base, other distribution) shifted {
	s := shifted{variant: other.variant}
	byQuantile := make([][]float64, len(shiftQuantiles))
	for block, theirs := range other.blocks {
		ours, ok := base.blocks[block]
		if !ok {
			continue
		}
		s.blocks++
		for n := range shiftQuantiles {
			byQuantile[n] = append(byQuantile[n], theirs[n]-ours[n])
		}
	}
	if s.blocks == 0 {
		return s
	}
	for n, q := range shiftQuantiles {
		if q >= 0.99 && min(base.fewest, other.fewest) < requestsForP99 {
			break
		}
		s.q = append(s.q, q*100)
		s.estimate = append(s.estimate, stat.HodgesLehmann(byQuantile[n]))
		if i := stat.SignedRankInterval(byQuantile[n], Level); i.Level > 0 {
			s.low, s.high = append(s.low, i.Low), append(s.high, i.High)
		}
	}
	return s
}

// shifts are the shift functions of one workload, the twin first.
func (v *view) shifts(id, workload string, all []distribution) (chart, bool) {
	var found []shifted
	if len(all) < 2 || !v.isBaseline(all[0].variant) || all[0].pooled == nil {
		return chart{}, false
	}
	for _, other := range all[1:] {
		s := shift(all[0], other)
		if s.blocks == 0 || len(found) == maxPanels {
			continue
		}
		found = append(found, s)
	}
	if len(found) == 0 {
		return chart{}, false
	}
	scales, common := shiftScales(found)
	rows := (len(found) + shiftColumns - 1) / shiftColumns
	d := &drawing{wide: pageWide, tall: float64(rows) * (shiftHead + shiftTall + shiftFoot)}
	for n, s := range found {
		left := float64(n%shiftColumns) * shiftWide
		top := float64(n/shiftColumns)*(shiftHead+shiftTall+shiftFoot) + shiftHead
		d.shiftPanel(s, left, top, scales[n])
	}
	caption := fmt.Sprintf("How much later than under %s each percentile of requests is answered: the Hodges–Lehmann estimate over blocks, the band its 95 %% signed-rank interval at each percentile by itself. A flat line adds the same to every request; a rising one hurts the slow ones. The first plot is the noise floor. ", v.label(v.def.Baseline))
	if common {
		caption += "All plots have one scale."
	} else {
		caption += "The effects are of such different sizes that each plot has a scale of its own."
	}
	return d.finish(id, "Shift of each percentile · "+workload, caption), true
}

// unlike is from which ratio of their reaches on plots no longer share a scale.
const unlike = 8

// reach is the range of one plot, zero included.
func (s shifted) reach() axis {
	lo, hi, _ := span(slices.Concat(s.estimate, s.low, s.high, []float64{0}))
	lo, hi = widen(lo, hi, 0.05, false)
	return axis{lo: lo, hi: hi}
}

// shiftScales are one scale for all, or one for each. The twin then has that of the
// smallest effect at the least, or noise would look like one.
func shiftScales(all []shifted) (scales []axis, common bool) {
	union := all[0].reach()
	var smallest, largest axis
	for _, s := range all {
		r := s.reach()
		scales = append(scales, r)
		union = axis{lo: min(union.lo, r.lo), hi: max(union.hi, r.hi)}
		if s.variant.TwinOf != "" {
			continue
		}
		if size := r.hi - r.lo; smallest.hi == smallest.lo || size < smallest.hi-smallest.lo {
			smallest = r
		}
		if r.hi-r.lo > largest.hi-largest.lo {
			largest = r
		}
	}
	if largest.hi-largest.lo <= unlike*(smallest.hi-smallest.lo) {
		for n := range scales {
			scales[n] = union
		}
		return scales, true
	}
	for n, s := range all {
		if s.variant.TwinOf != "" {
			scales[n] = axis{lo: min(scales[n].lo, smallest.lo), hi: max(scales[n].hi, smallest.hi)}
		}
	}
	return scales, false
}

func (d *drawing) shiftPanel(s shifted, left, top float64, y axis) {
	x := axis{lo: 0, hi: 100, from: left + shiftLeft, to: left + shiftWide - 14}
	y.from, y.to = top+shiftTall, top
	d.mark(s.variant.look, left+shiftLeft+5, top-12, 4, markSolid)
	d.text(left+shiftLeft+15, top-8, atStart, "name", cutPixels(s.variant.label, shiftWide-shiftLeft-30, textSize))
	d.frame(frame{
		x: x, y: y, yTicks: linearTicks(y.lo, y.hi, 5), xTitle: "percentile",
		xTicks: []tick{{5, "5"}, {25, "25"}, {50, "50"}, {75, "75"}, {95, "95"}},
	})
	d.text(left+shiftLeft-6, top-8, atEnd, "axis", "ms")
	d.line(x.from, y.at(0), x.to, y.at(0), "one")
	at := func(values []float64) []point {
		var out []point
		for n, value := range values {
			out = append(out, point{x.at(s.q[n]), y.at(value)})
		}
		return out
	}
	if len(s.low) == len(s.q) {
		d.area(at(s.high), at(s.low), "ciband "+s.variant.look.class)
	}
	d.hint("pt", fmt.Sprintf("%s, %s", s.variant.label, plural(int64(s.blocks), "block", "blocks")))
	d.path(at(s.estimate), "ln "+s.variant.look.class, "")
	for _, p := range at(s.estimate) {
		d.mark(s.variant.look, p.x, p.y, 2.5, markSolid)
	}
	d.endGroup()
}
