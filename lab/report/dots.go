package report

import (
	"fmt"
	"math"
	"slices"

	"kurabe/lab/result"
	"kurabe/lab/stat"
	"kurabe/lab/study"
)

// Geometry of the plot of trials, in pixels.
const (
	dotsLeft   = 64.0
	dotsRight  = 14.0
	dotsTall   = 150.0 // of a workload's panel
	dotsSmall  = 96.0  // when there are more than three
	canaryTall = 84.0
	panelGap   = 34.0
	dotsBottom = 44.0
	maxDots    = 20000
	// disturbedBy is the bound of probe.Disturbed: how far the processor's piece of work may
	// move during a trial. A test holds the two together.
	disturbedBy = 0.05
)

// trialDots are all trials in the order in which they ran, one panel for each workload,
// with the machine's canary below: a drift or a disturbance shows in both.
func (v *view) trialDots() (chart, bool) {
	n := len(v.file.Trials)
	if n == 0 {
		return chart{}, false
	}
	shown := v.workloads[:min(len(v.workloads), maxPanels)]
	tall := dotsTall
	if len(shown) > 3 {
		tall = dotsSmall
	}
	d := &drawing{wide: pageWide}
	x := axis{lo: 0, hi: float64(n + 1), from: dotsLeft, to: pageWide - dotsRight}
	y := 0.0
	for _, w := range shown {
		metric := v.primary(w.Name)
		d.text(0, y+14, atStart, "heading", workloadTitle(w)+" · "+withUnit(metric.title, metric.unit))
		d.dotPanel(v, w, x, y+24, y+24+tall)
		y += 24 + tall + panelGap/2
	}
	if kinds := v.canaries(); len(kinds) > 0 {
		d.text(0, y+14, atStart, "heading", "canary · a fixed piece of work before and after each trial, against its median")
		d.canaryPanel(v, kinds, x, y+24, y+24+canaryTall)
		y += 24 + canaryTall
	}
	d.orderAxis(v, x, y)
	d.tall = y + dotsBottom
	caption := "Every trial in the order in which it ran, left to right; light lines divide the blocks. Solid: counts. Hollow: counts, but its warm-up found no end, or it was disturbed when it was measured again, too. Crossed out: does not count. One that gave no figure stands as a cross on the axis. The scales are logarithmic; the short lines are each variant’s median."
	if slices.Contains(v.canaries(), canaryCPU) {
		caption += " Below them, the shaded band is the rule: from before a trial to after it the processor’s piece of work may become " + percent(disturbedBy) +
			" slower or faster; a trial during which the line leaves the band was disturbed, whatever its own figure, and is run again. Syncs are shown and have no bound."
	}
	c := d.finish("trials", "Every trial in order of execution", caption)
	if left := len(v.workloads) - len(shown); left > 0 {
		c.Notes = append(c.Notes, plural(int64(left), "more workload is", "more workloads are")+" in the tables and not drawn here.")
	}
	if n > maxDots {
		c.Notes = append(c.Notes, "Only the first "+count(maxDots)+" trials are drawn.")
	}
	return c, true
}

func (d *drawing) dotPanel(v *view, w study.Workload, x axis, top, bottom float64) {
	var values []float64
	metric := v.primary(w.Name).name
	for n := range v.file.Trials {
		t := &v.file.Trials[n]
		if value, ok := v.value(t, metric); ok && t.Workload == w.Name && value > 0 {
			values = append(values, value)
		}
	}
	lo, hi, ok := span(values)
	if !ok {
		lo, hi = 1, 10
	}
	lo, hi = widen(lo, hi, 0.08, true)
	y := axis{lo: lo, hi: hi, from: bottom, to: top, log: true}
	d.blockLines(v, x, top, bottom)
	d.frame(frame{x: x, y: y, yTicks: logTicks(lo, hi, int((bottom-top)/26)+1)})
	for _, one := range v.variants {
		if middle, n := v.median(metric, one.Name, w.Name); n > 0 && middle > 0 {
			d.line(x.to, y.at(middle), x.to+dotsRight, y.at(middle), "ci "+one.look.class)
		}
	}
	for n := range v.file.Trials[:min(len(v.file.Trials), maxDots)] {
		if t := &v.file.Trials[n]; t.Workload == w.Name {
			d.dot(v, t, n, x, y)
		}
	}
}

func (d *drawing) dot(v *view, t *result.Trial, n int, x, y axis) {
	metric := v.primary(t.Workload)
	value, ok := v.value(t, metric.name)
	text := fmt.Sprintf("trial %s, block %d, %s: %s", count(int64(n+1)), t.Block, v.label(t.Variant), quantity(value, metric.unit))
	state, size := markSolid, 4.0
	switch {
	case !t.Counts():
		state = markOut
	case t.Status == result.StatusUnsettled:
		state = markHollow
	}
	if !ok {
		text = fmt.Sprintf("trial %s, block %d, %s: no figure", count(int64(n+1)), t.Block, v.label(t.Variant))
	}
	if t.Status != result.StatusOK {
		text += ", " + t.Status + ": " + reasonWords(t.Reason)
	}
	d.hint("pt", text)
	if at := y.from; ok && value > 0 {
		d.mark(v.lookOf(t.Variant), x.at(float64(n+1)), y.at(value), size, state)
	} else {
		d.mark(v.lookOf(t.Variant), x.at(float64(n+1)), at, size, markOut)
	}
	d.endGroup()
}

// blockStarts are the positions, from 0, of the first trial of each block.
func (v *view) blockStarts() []int {
	var out []int
	last := math.MinInt
	for n := range v.file.Trials {
		if b := v.file.Trials[n].Block; b != last {
			out, last = append(out, n), b
		}
	}
	return out
}

func (d *drawing) blockLines(v *view, x axis, top, bottom float64) {
	for _, n := range v.blockStarts() {
		if at := x.at(float64(n) + 0.5); n > 0 {
			d.line(at, top, at, bottom, "block")
		}
	}
}

// orderAxis numbers the blocks under the last panel, as many as fit.
func (d *drawing) orderAxis(v *view, x axis, y float64) {
	starts := v.blockStarts()
	for k, n := range starts {
		end := len(v.file.Trials)
		if k+1 < len(starts) {
			end = starts[k+1]
		}
		middle := (x.at(float64(n)+0.5) + x.at(float64(end)+0.5)) / 2
		label := count(int64(v.file.Trials[n].Block))
		if d.claim(middle, y+16, atMiddle, label, textSize) {
			d.text(middle, y+16, atMiddle, "tick", label)
		}
	}
	d.text((x.from+x.to)/2, y+36, atMiddle, "axis", fmt.Sprintf("block, %s in order of execution", plural(int64(len(v.file.Trials)), "trial", "trials")))
}

// canaries are the kinds that the file has, by name.
func (v *view) canaries() []string {
	var kinds []string
	for n := range v.file.Trials {
		for kind := range v.file.Trials[n].Canary {
			if !slices.Contains(kinds, kind) && len(kinds) < maxPanels {
				kinds = append(kinds, kind)
			}
		}
	}
	slices.Sort(kinds)
	return kinds
}

func (d *drawing) canaryPanel(v *view, kinds []string, x axis, top, bottom float64) {
	type series struct {
		kind   string
		middle float64
	}
	var all []series
	var relative []float64
	for _, kind := range kinds {
		var values []float64
		for n := range v.file.Trials {
			if c, ok := v.file.Trials[n].Canary[kind]; ok && c[0] > 0 && c[1] > 0 {
				values = append(values, c[0], c[1])
			}
		}
		middle := stat.Median(values)
		all = append(all, series{kind, middle})
		for _, value := range values {
			relative = append(relative, value/middle)
		}
	}
	lo, hi, ok := span(append(relative, 1/(1+disturbedBy), 1+disturbedBy))
	if !ok || lo <= 0 {
		return
	}
	lo, hi = widen(lo, hi, 0.06, true)
	y := axis{lo: lo, hi: hi, from: bottom, to: top, log: true}
	for _, s := range all {
		if s.kind == canaryCPU {
			d.canaryBand(v, s.middle, x, y)
		}
	}
	d.blockLines(v, x, top, bottom)
	d.frame(frame{x: x, y: y, yTicks: changeTicks(y, 18)})
	for k, s := range all {
		var line []point
		for n := range v.file.Trials[:min(len(v.file.Trials), maxDots)] {
			if c, ok := v.file.Trials[n].Canary[s.kind]; ok && c[0] > 0 && c[1] > 0 {
				at := float64(n + 1)
				line = append(line, point{x.at(at - 0.25), y.at(c[0] / s.middle)}, point{x.at(at + 0.25), y.at(c[1] / s.middle)})
			}
		}
		class := fmt.Sprintf("canary k%d", min(k, 1))
		d.path(line, class, dashes[min(k, 1)*4])
		legend := fmt.Sprintf("%s, median %s ms", clean(s.kind), num(s.middle))
		at := pageWide - dotsRight - float64(len(all)-1-k)*190
		d.text(at, top-9, atEnd, "tick", legend)
		d.path([]point{{at - pixels(legend, textSize) - 26, top - 13}, {at - pixels(legend, textSize) - 4, top - 13}}, class, dashes[min(k, 1)*4])
	}
}

// canaryCPU is the kind of canary that has a bound.
const canaryCPU = "cpu"

// canaryBand is where the second end of each trial's line has to be: around the first, as
// the rule compares a trial with itself. Between trials a machine may change.
func (d *drawing) canaryBand(v *view, middle float64, x, y axis) {
	within := func(value float64) float64 { return y.at(min(max(value/middle, y.lo), y.hi)) }
	var upper, lower []point
	for n := range v.file.Trials[:min(len(v.file.Trials), maxDots)] {
		c, ok := v.file.Trials[n].Canary[canaryCPU]
		if !ok || c[0] <= 0 {
			continue
		}
		high, low := within(c[0]*(1+disturbedBy)), within(c[0]/(1+disturbedBy))
		for _, at := range []float64{float64(n) + 0.5, float64(n) + 1.5} {
			upper, lower = append(upper, point{x.at(at), high}), append(lower, point{x.at(at), low})
		}
	}
	d.area(upper, lower, "band")
}
