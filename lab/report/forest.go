package report

import (
	"fmt"
	"math"

	"kurabe/lab/result"
	"kurabe/lab/stat"
	"kurabe/lab/study"
)

// Geometry of the forest plot, in pixels.
const (
	forestLabels   = 262.0 // names, left of the axis
	forestFigures  = 330.0 // ratio, interval and verdict, right of it
	forestRow      = 23.0
	forestSpace    = 10.0 // above a heading
	forestTop      = 54.0
	forestBottom   = 48.0
	maxForestRows  = 240
	widestForest   = 10000.0 // the axis ends at this factor and its inverse
	forestMinReach = 1.01    // and goes at least so far
)

// forestLine is one line of the plot; a heading has no estimate.
type forestLine struct {
	heading string
	margin  float64 // of the heading's workload, where they differ; 0 where one band is for all
	label   string
	look    look
	e       *result.Estimate
	twin    bool
}

func (v *view) forestLines() (lines []forestLine, left int) {
	_, alike := v.onePrimary()
	for _, w := range v.workloads {
		metric, heading := v.primary(w.Name), forestLine{heading: workloadTitle(w)}
		if !alike {
			heading.margin = v.margin(w.Name)
			heading.heading += " · " + metric.title + ", margin ±" + percent(heading.margin) + ", " + betterWords(metric)
		}
		lines = append(lines, heading)
		for _, x := range v.variants {
			if v.isBaseline(x) {
				continue
			}
			if len(lines) >= maxForestRows {
				left++
				continue
			}
			lines = append(lines, forestLine{label: x.label, look: x.look, e: v.estimate(metric.name, x.Name, w.Name), twin: x.TwinOf != ""})
		}
	}
	return lines, left
}

// onePrimary is what decides under the first workload, and whether it does so under all.
func (v *view) onePrimary() (study.Primary, bool) {
	first := v.def.Primary
	for n, w := range v.workloads {
		if p := v.def.PrimaryOf(w.Name); n == 0 {
			first = p
		} else if p != first {
			return first, false
		}
	}
	return first, true
}

func betterWords(m measure) string {
	if m.better == stat.LowerIsBetter {
		return "less is better"
	}
	return "more is better"
}

// forest is every variant under every workload: its ratio to the baseline with the
// interval, the twin first, the margin as a band.
func (v *view) forest() (chart, bool) {
	lines, left := v.forestLines()
	var reach []float64
	for _, l := range lines {
		if l.e != nil && l.e.Ratio.Pairs > 0 {
			reach = append(reach, l.e.Ratio.Estimate)
			if hasInterval(l.e.Ratio) {
				reach = append(reach, l.e.Ratio.Interval.Low, l.e.Ratio.Interval.High)
			}
		}
	}
	lo, hi, ok := span(reach)
	if !ok || lo <= 0 {
		return chart{}, false
	}
	margin := 1.0
	for _, w := range v.workloads {
		margin = max(margin, 1+v.margin(w.Name))
	}
	lo = max(1/widestForest, min(lo, 1/margin, 1/forestMinReach))
	hi = min(widestForest, max(hi, margin, forestMinReach))
	lo, hi = widen(lo, hi, 0.04, true)
	d := &drawing{wide: pageWide, tall: forestTop + forestRow*float64(len(lines)) + forestSpace*float64(len(v.workloads)-1) + forestBottom}
	x := axis{lo: lo, hi: hi, from: forestLabels, to: pageWide - forestFigures, log: true}
	one, alike := v.onePrimary()
	what, margins := measureOf(one.Metric).title, "margin of ±"+percent(one.Margin)
	if !alike {
		what, margins = "what decides under each load", "margin of each load,"
	}
	d.forestBands(x, lines, one.Margin)
	d.forestFrame(x, v, what)
	y := forestTop + forestRow/2
	for n, l := range lines {
		if l.heading != "" && n > 0 {
			y += forestSpace
		}
		d.forestLine(x, y, l, v)
		y += forestRow
	}
	caption := fmt.Sprintf("Ratio of each variant to %s from the log-ratios of blocks that have both: a mark for the estimate, a line for its 95 %% interval. The shaded band is the %s declared before the run; %s is the noise floor. Distances are equal for equal ratios.",
		v.label(v.def.Baseline), margins, v.twinWords())
	c := d.finish("forest", "Effect on "+what, caption)
	if left > 0 {
		c.Notes = append(c.Notes, plural(int64(left), "row is", "rows are")+" left out of the plot; all are in the tables.")
	}
	return c, true
}

// twinWords name the twin in a caption.
func (v *view) twinWords() string {
	for _, x := range v.variants {
		if x.TwinOf != "" {
			return x.label + ", the baseline’s own recipe,"
		}
	}
	return "the twin"
}

// forestBands shades the margin: one band when all workloads have the same, else one for
// each, beside its lines.
func (d *drawing) forestBands(x axis, lines []forestLine, margin float64) {
	band := func(margin, top, bottom float64) {
		d.rect(x.at(1/(1+margin)), top, x.at(1+margin)-x.at(1/(1+margin)), bottom-top, "band")
	}
	end := d.tall - forestBottom
	if lines[0].margin == 0 {
		band(margin, forestTop-6, end)
		return
	}
	y, top := forestTop, 0.0
	for n, l := range lines {
		if l.heading != "" && n > 0 {
			band(margin, top, y)
			y += forestSpace
		}
		if y += forestRow; l.heading != "" {
			margin, top = l.margin, y
		}
	}
	band(margin, top, end)
}

func (d *drawing) forestFrame(x axis, v *view, what string) {
	bottom := d.tall - forestBottom
	for _, t := range changeTicks(x, 62) {
		at := x.at(t.value)
		d.line(at, forestTop-6, at, bottom, "grid")
		d.text(at, bottom+16, atMiddle, "tick", t.label)
	}
	d.line(x.at(1), forestTop-6, x.at(1), bottom, "one")
	d.line(x.from, bottom, x.to, bottom, "rule")
	d.text((x.from+x.to)/2, bottom+36, atMiddle, "axis", "change of "+what+" against "+v.label(v.def.Baseline)+", log scale")
	if one, alike := v.onePrimary(); alike {
		worse, better := "◂ worse", "better ▸"
		if measureOf(one.Metric).better == stat.LowerIsBetter {
			worse, better = "◂ better", "worse ▸"
		}
		d.text(x.from, 16, atStart, "side", worse)
		d.text(x.to, 16, atEnd, "side", better)
		band := "margin ±" + percent(one.Margin)
		half := pixels(band, textSize) / 2
		d.text(min(max(x.at(1), x.from+half), x.to-half), 38, atMiddle, "side", band)
	}
	d.text(x.to+14, 16, atStart, "side", "ratio  [95 % interval]")
	d.text(d.wide, 16, atEnd, "side", "verdict")
}

func (d *drawing) forestLine(x axis, y float64, l forestLine, v *view) {
	if l.heading != "" {
		d.text(0, y+4, atStart, "heading", cutPixels(l.heading, x.to, textSize))
		d.line(0, y+forestRow/2-1, d.wide, y+forestRow/2-1, "grid")
		return
	}
	class := "name"
	if l.twin {
		class = "name twin"
	}
	d.mark(l.look, 12, y, 4.5, markSolid)
	d.text(24, y+4, atStart, class, cutPixels(l.label, x.from-36, textSize))
	if l.e == nil || l.e.Ratio.Pairs == 0 {
		why := "not measured"
		if l.e != nil && l.e.Why != "" {
			why = l.e.Why
		}
		d.text(x.to+14, y+4, atStart, "tick", cutPixels(clean(why), forestFigures-14, textSize))
		return
	}
	r := l.e.Ratio
	d.hint("pt", fmt.Sprintf("%s: ratio %s %s, %s, %s", l.label, ratio(r), interval(r), plural(int64(r.Pairs), "block", "blocks"), clean(string(l.e.Verdict))))
	if hasInterval(r) {
		d.whisker(x, y, r, l.look)
	}
	if x.holds(r.Estimate) {
		d.mark(l.look, x.at(r.Estimate), y, 3.6, markSolid)
	}
	d.endGroup()
	d.text(x.to+14, y+4, atStart, "figure", ratio(r)+"  "+interval(r))
	verdict, vclass := clean(string(l.e.Verdict)), "verdict "+verdictClass(l.e.Verdict)
	if l.twin {
		verdict, vclass = "noise floor", "tick"
	}
	d.text(d.wide, y+4, atEnd, vclass, verdict)
}

// whisker draws an interval; an end beyond the axis is an arrow.
func (d *drawing) whisker(x axis, y float64, r stat.Ratio, l look) {
	low, high := x.at(r.Interval.Low), x.at(r.Interval.High)
	d.line(low, y, high, y, "ci "+l.class)
	for _, end := range []struct{ value, at, way float64 }{{r.Interval.Low, low, -1}, {r.Interval.High, high, 1}} {
		if x.holds(end.value) || math.IsNaN(end.value) {
			d.line(end.at, y-6, end.at, y+6, "ci "+l.class)
			continue
		}
		d.path([]point{{end.at - 5*end.way, y - 5}, {end.at, y}, {end.at - 5*end.way, y + 5}}, "ci "+l.class, "")
	}
}
