package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kurabe/lab/result"
	"kurabe/lab/stat"
	"kurabe/lab/study"
)

// leastSteps is from how many numbers of clients on a study is one of scale.
const leastSteps = 3

// ladder are workloads that differ in nothing but the number of clients, fewest first.
type ladder []study.Workload

// ladders finds them; at the most maxPanels.
func (v *view) ladders() []ladder {
	byKind := map[string]ladder{}
	var kinds []string
	for _, w := range v.workloads {
		kind := strings.Join([]string{
			w.Generator, w.Kit, w.Script, w.Protocol, w.Mode, w.Arrival, strconv.FormatBool(w.Connect), strconv.Itoa(w.Scale), strconv.Itoa(w.Rows),
		}, "\x00")
		if byKind[kind] == nil {
			kinds = append(kinds, kind)
		}
		byKind[kind] = append(byKind[kind], w)
	}
	var out []ladder
	for _, kind := range kinds {
		l := byKind[kind]
		slices.SortStableFunc(l, func(a, b study.Workload) int { return a.Clients - b.Clients })
		l = slices.CompactFunc(l, func(a, b study.Workload) bool { return a.Clients == b.Clients })
		if len(l) >= leastSteps && l[0].Clients > 0 && len(out) < maxPanels {
			out = append(out, l)
		}
	}
	return out
}

// rung is what one variant did under one workload of a ladder.
type rung struct {
	clients   float64
	low, high float64 // of the trials
	middle    float64 // NaN when not measured
}

// over are the rungs of a figure of trials.
func (v *view) over(l ladder, x variant, figure func(*result.Trial) (float64, bool)) []rung {
	var out []rung
	for _, w := range l {
		var values []float64
		for _, t := range v.counted(x.Name, w.Name) {
			if value, ok := figure(t); ok {
				values = append(values, value)
			}
		}
		if lo, hi, ok := span(values); ok {
			out = append(out, rung{float64(w.Clients), lo, hi, stat.Median(values)})
		}
	}
	return out
}

func (v *view) throughput(t *result.Trial) (float64, bool) { return v.value(t, "tps") }

// scalePlots are throughput over clients and, beside each other, processor and disk.
func (v *view) scalePlots(n int, l ladder) []chart {
	id := func(name string) string { return fmt.Sprintf("%s-%d", name, n) }
	load := clean(strings.TrimSpace(l[0].Generator + " " + l[0].Kit))
	var out []chart
	add := func(c chart, ok bool) {
		if ok {
			out = append(out, c)
		}
	}
	add(v.scalePlot(scalePanel{
		id: id("scale"), title: "Throughput over clients · " + load, y: "transactions a second", wide: pageWide, tall: 360, names: true,
		caption: "Medians over the trials that count; the bars reach from the least to the most. Both scales are logarithmic, so that twice the clients and twice the throughput are a line of one slope.",
		log:     true,
	}, l, v.throughput))
	add(v.scalePlot(scalePanel{
		id: id("scale-cpu"), title: "Processor", y: "share of what it may use, %", wide: halfWide, tall: 240, most: 1, factor: 100,
		caption: "Processor time of the server as a share of what its class or the machine lets it use; the line is at " + percent(fullShare) + ".", line: fullShare,
	}, l, v.cpuShare))
	writes, ok := v.scalePlot(scalePanel{
		id: id("scale-iops"), title: "Write IOPS", y: "writes to disk a second", wide: halfWide, tall: 240, factor: 1,
		caption: "Writes of the server to the disk of its data a second, as the kernel counts them; dashed, where near enough, the limit of the class.", bound: v.writeLimit,
	}, l, v.writeOps)
	if !ok {
		writes, ok = v.scalePlot(scalePanel{
			id: id("scale-bytes"), title: "Written", y: "MB a second", wide: halfWide, tall: 240, factor: 1,
			caption: "Bytes of the server to disk; the number of writes was not probed.",
		}, l, v.writeRate)
	}
	add(writes, ok)
	return out
}

// scalePanel is one plot over clients.
type scalePanel struct {
	id, title, y, caption string
	wide, tall            float64
	names, log            bool
	most                  float64 // the axis reaches at least this, 0 for as far as values go
	factor                float64 // from the figure to the axis
	line                  float64 // a limit to draw, 0 for none
	// bound is the limit of each variant itself, nil for none.
	bound func(*result.Trial) (float64, bool)
}

func (v *view) scalePlot(p scalePanel, l ladder, figure func(*result.Trial) (float64, bool)) (chart, bool) {
	var values []float64
	for _, x := range v.variants {
		for _, r := range v.over(l, x, figure) {
			values = append(values, r.low, r.high)
		}
	}
	lo, hi, ok := span(values)
	if !ok || p.log && lo <= 0 {
		return chart{}, false
	}
	if p.log {
		lo, hi = widen(lo, hi, 0.06, true)
	} else {
		lo, hi = 0, max(v.reach(p, l, hi)*1.06, p.most)
	}
	right := 16.0
	if p.names {
		right = curveRight
	}
	d := &drawing{wide: p.wide, tall: p.tall}
	first, last := float64(l[0].Clients), float64(l[len(l)-1].Clients)
	x := axis{lo: first / 1.15, hi: last * 1.15, from: curveLeft, to: p.wide - right, log: true}
	y := axis{lo: lo, hi: hi, from: p.tall - curveFoot, to: curveTop, log: p.log}
	f := frame{x: x, y: y, xTitle: "clients, log scale", yTitle: p.y}
	for _, w := range l {
		label := count(int64(w.Clients))
		if d.claim(x.at(float64(w.Clients)), p.tall, atMiddle, label, textSize) {
			f.xTicks = append(f.xTicks, tick{float64(w.Clients), label})
		}
	}
	if p.log {
		f.yTicks, f.yTitle = logTicks(lo, hi, 8), p.y+", log scale"
	} else {
		for _, t := range linearTicks(lo*p.factor, hi*p.factor, 5) {
			f.yTicks = append(f.yTicks, tick{t.value / p.factor, t.label})
		}
	}
	d.frame(f)
	if p.line > 0 {
		d.line(x.from, y.at(p.line), x.to, y.at(p.line), "one")
	}
	var ends []lineEnd
	for _, one := range v.variants {
		if at, ok := v.boundOf(p, l, one); ok && at <= hi {
			d.path([]point{{x.from, y.at(at)}, {x.to, y.at(at)}}, "ln "+one.look.class, boundDash)
		}
		if e, ok := d.rungs(v, one, v.over(l, one, figure), x, y); ok {
			ends = append(ends, e)
		}
	}
	if p.names {
		d.names(ends, x.to+14, curveTop, p.tall-curveFoot, curveRight-40)
	}
	return d.finish(p.id, p.title, p.caption), true
}

// boundNear is up to which multiple of the largest figure limits are drawn: one far above
// would flatten all that was measured.
const (
	boundNear = 1.5
	boundDash = "1 5"
)

// boundOf is the limit of a variant, the same under all loads.
func (v *view) boundOf(p scalePanel, l ladder, x variant) (float64, bool) {
	if p.bound == nil {
		return 0, false
	}
	rungs := v.over(l, x, p.bound)
	if len(rungs) == 0 {
		return 0, false
	}
	return rungs[len(rungs)-1].middle, true
}

// reach is the end of an axis: the largest figure, or a limit that is near it.
func (v *view) reach(p scalePanel, l ladder, most float64) float64 {
	far := most
	for _, x := range v.variants {
		if at, ok := v.boundOf(p, l, x); ok && at <= most*boundNear {
			far = max(far, at)
		}
	}
	return far
}

func (d *drawing) rungs(v *view, one variant, rungs []rung, x, y axis) (lineEnd, bool) {
	var line []point
	d.hint("pt", one.label)
	for _, r := range rungs {
		at := point{x.at(r.clients), y.at(r.middle)}
		d.line(at.x, y.at(r.low), at.x, y.at(r.high), "ci "+one.look.class)
		line = append(line, at)
	}
	d.path(line, "ln "+one.look.class, one.look.dash)
	for _, p := range line {
		d.mark(one.look, p.x, p.y, 4, markSolid)
	}
	d.endGroup()
	if len(line) == 0 {
		return lineEnd{}, false
	}
	return lineEnd{line[len(line)-1], one.label, one.look}, true
}
