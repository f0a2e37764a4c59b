package report

import (
	"fmt"
	"math"

	"kurabe/lab/result"
	"kurabe/lab/study"
)

// Geometry of a time series, in pixels.
const (
	seriesLeft  = 62.0
	seriesRight = 12.0
	seriesHead  = 50.0
	seriesTall  = 96.0 // of each of the two plots
	seriesGap   = 26.0
	seriesFoot  = 46.0
	binMs       = 100.0
	binsASecond = 1000 / binMs
	maxSeriesMs = 24 * 3600 * 1000
)

// timeline is a trial over time: transactions a second in each bin and the slowest.
type timeline struct {
	variant variant
	trial   *result.Trial
	number  int       // of the trial, from 1
	at      []float64 // start of each bin, s after the first measured phase began
	tps     []float64
	slowest []float64 // ms; NaN in a bin without an answer
	phases  []stretch // named stretches, s
	marks   []stretch // events, s
}

// timelines are those of the median trials of a workload's variants; empty when no
// trial has bins.
func (v *view) timelines(w study.Workload) []timeline {
	var out []timeline
	for _, x := range v.variants {
		t := v.medianTrial(x.Name, w.Name)
		if t == nil || len(out) == maxPanels {
			continue
		}
		if line := v.timeline(x, t); len(line.at) > 0 {
			out = append(out, line)
		}
	}
	return out
}

func (v *view) timeline(x variant, t *result.Trial) timeline {
	line := timeline{variant: x, trial: t}
	for n := range v.file.Trials {
		if &v.file.Trials[n] == t {
			line.number = n + 1
		}
	}
	start, end := math.NaN(), 0.0
	for _, p := range t.Phases {
		if p.Load == nil || len(p.Load.Bins) == 0 {
			continue
		}
		if math.IsNaN(start) {
			start = p.StartMs
		}
		from := (p.StartMs - start) / 1000
		end = from + max(p.Ms, float64(len(p.Load.Bins))*binMs)/1000
		line.phases = append(line.phases, stretch{from: from, to: end, text: p.Name})
		for n, answered := range p.Load.Bins {
			if float64(n)*binMs > maxSeriesMs {
				break
			}
			slowest := math.NaN()
			if n < len(p.Load.BinsMax) && answered > 0 {
				slowest = p.Load.BinsMax[n]
			}
			line.at = append(line.at, from+float64(n)*binMs/1000)
			line.tps = append(line.tps, float64(answered)*binsASecond)
			line.slowest = append(line.slowest, slowest)
		}
	}
	line.marks = v.eventsOf(t, start, min(end, maxSeriesMs/1000))
	return line
}

// series draws the timelines of a workload on common scales.
func (v *view) series(w study.Workload) []chart {
	all := v.timelines(w)
	var ends, tps, slowest []float64
	for _, line := range all {
		ends = append(ends, line.at[len(line.at)-1]+binMs/1000)
		tps = append(tps, line.tps...)
		slowest = append(slowest, line.slowest...)
	}
	_, end, ok := span(ends)
	_, most, okTps := span(tps)
	lo, hi, okMs := span(slowest)
	if !ok || !okTps {
		return nil
	}
	if !okMs || lo <= 0 {
		lo, hi = 1, 10
	}
	lo, hi = widen(lo, hi, 0.05, true)
	var out []chart
	for n, line := range all {
		d := &drawing{wide: halfWide, tall: seriesHead + 2*seriesTall + seriesGap + seriesFoot}
		x := axis{lo: 0, hi: end, from: seriesLeft, to: halfWide - seriesRight}
		d.timeline(v, line, x, axis{lo: 0, hi: max(most, 1) * 1.05}, axis{lo: lo, hi: hi, log: true})
		caption := fmt.Sprintf("Trial %s, block %d.", count(int64(line.number)), line.trial.Block)
		if float64(len(line.at)) > x.to-x.from {
			caption += " There are more bins than pixels: the lines span the least and the most of each pixel."
		}
		c := d.finish(fmt.Sprintf("series-%d", n+1), line.variant.label, caption)
		c.Mark = markIcon(line.variant.look)
		out = append(out, c)
	}
	return out
}

func (d *drawing) timeline(v *view, line timeline, x, tps, slow axis) {
	look := line.variant.look
	top := seriesHead
	tps.from, tps.to = top+seriesTall, top
	bottom := top + 2*seriesTall + seriesGap
	slow.from, slow.to = bottom, bottom-seriesTall
	d.stretches(line, x, top, bottom)
	d.frame(frame{x: x, y: tps, yTicks: linearTicks(tps.lo, tps.hi, 4)})
	d.text(seriesLeft, top-5, atStart, "axis", "transactions a second, in bins of 100 ms")
	d.frame(frame{x: x, y: slow, yTicks: logTicks(slow.lo, slow.hi, 5), xTicks: linearTicks(x.lo, x.hi, 8), xTitle: "seconds of measuring"})
	d.text(seriesLeft, bottom-seriesTall-5, atStart, "axis", "slowest of each bin, ms, log scale")
	d.path(perPixel(line.at, line.tps, x, tps), "ln thin "+look.class, "")
	d.path(perPixel(line.at, line.slowest, x, slow), "ln thin "+look.class, "")
}

// perPixel maps a series to points. Where a pixel has several bins it gives the least
// and the most of them, so that no peak and no gap is lost.
func perPixel(at, values []float64, x, y axis) []point {
	if float64(len(at)) <= math.Abs(x.to-x.from) {
		out := make([]point, len(at))
		for n := range at {
			out[n] = point{x.at(at[n]), y.at(values[n])}
			if math.IsNaN(values[n]) {
				out[n].y = math.NaN()
			}
		}
		return out
	}
	var out []point
	for n := 0; n < len(at); {
		column := math.Floor(x.at(at[n]))
		end := n
		for end < len(at) && math.Floor(x.at(at[end])) == column {
			end++
		}
		if lo, hi, ok := span(values[n:end]); ok {
			out = append(out, point{column, y.at(lo)}, point{column, y.at(hi)})
		} else {
			out = append(out, point{column, math.NaN()})
		}
		n = end
	}
	return out
}
