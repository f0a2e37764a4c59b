package report

import (
	"fmt"
	"math"
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

// Limits beyond which a resource is said to limit: a share of what there is, or of the
// samples of active sessions.
const (
	fullShare  = 0.85
	waitsShare = 0.5
)

// cpuShare is the processor time of the server as a share of the machine's.
func (v *view) cpuShare(t *result.Trial) (float64, bool) {
	cores, err := strconv.ParseFloat(v.host("cores"), 64)
	p := v.judged(t)
	if err != nil || cores <= 0 || p == nil || p.Ms <= 0 {
		return 0, false
	}
	seconds, ok := p.Probes["cpu_s"]
	return seconds / (cores * p.Ms / 1000), ok
}

// writeOps are writes to disk a second, of probes that count them.
func (v *view) writeOps(t *result.Trial) (float64, bool) {
	p := v.judged(t)
	if p == nil || p.Ms <= 0 {
		return 0, false
	}
	ops, ok := p.Probes["write_ops"]
	return ops / (p.Ms / 1000), ok
}

// writeRate are bytes to disk a second, MB.
func (v *view) writeRate(t *result.Trial) (float64, bool) {
	p := v.judged(t)
	if p == nil || p.Ms <= 0 {
		return 0, false
	}
	bytes, ok := p.Probes["write_bytes"]
	return bytes / 1e6 / (p.Ms / 1000), ok
}

// waitShare is the part of the samples of active sessions that wait for a kind.
func (v *view) waitShare(kinds ...string) func(*result.Trial) (float64, bool) {
	return func(t *result.Trial) (float64, bool) {
		p := v.judged(t)
		if p == nil {
			return 0, false
		}
		all, those := 0, 0
		for name, n := range p.Waits {
			all += n
			if slices.ContainsFunc(kinds, func(kind string) bool { return strings.HasPrefix(name, kind) }) {
				those += n
			}
		}
		return float64(those) / float64(max(all, 1)), all > 0
	}
}

// limit names the resource that limits a variant under a workload, with the figure that
// says so; "" when none of those looked at does.
func (v *view) limit(x variant, w study.Workload) string {
	middle := func(figure func(*result.Trial) (float64, bool)) float64 {
		if r := v.over(ladder{w}, x, figure); len(r) == 1 {
			return r[0].middle
		}
		return math.NaN()
	}
	if cpu := middle(v.cpuShare); cpu >= fullShare {
		return "processor " + fixed(100*cpu, 0) + "\u00a0%"
	}
	if ops := middle(v.writeOps); x.IOPS > 0 && ops >= fullShare*float64(x.IOPS) {
		return "write IOPS " + fixed(100*ops/float64(x.IOPS), 0) + "\u00a0%"
	}
	if share := middle(v.waitShare("Lock")); share >= waitsShare {
		return "locks, " + fixed(100*share, 0) + "\u00a0% of waits"
	}
	if share := middle(v.waitShare("IO:")); share >= waitsShare {
		return "disk, " + fixed(100*share, 0) + "\u00a0% of waits"
	}
	return ""
}

// limits is the table of what limits each point.
func (v *view) limits(l ladder) *grid {
	g := &grid{
		Title: "Which resource limits each point", Columns: []string{"variant"}, Names: maxColumns + 1,
		Caption: fmt.Sprintf("Processor or write IOPS from %s of what there is; locks or disk from %s of the samples of active sessions. The first that applies is named.", percent(fullShare), percent(waitsShare)),
	}
	shown := l[:min(len(l), maxColumns)]
	for _, w := range shown {
		g.Columns = append(g.Columns, plural(int64(w.Clients), "client", "clients"))
	}
	for _, x := range v.variants {
		cells := []string{x.label}
		for _, w := range shown {
			cell := orElse(v.limit(x, w), "none of these")
			if _, n := v.median("tps", x.Name, w.Name); n == 0 {
				cell = none
			}
			cells = append(cells, cell)
		}
		g.Rows = append(g.Rows, gridRow{Cells: cells, Muted: x.TwinOf != ""})
	}
	if left := len(l) - len(shown); left > 0 {
		g.More = plural(int64(left), "step is", "steps are") + " left out"
	}
	return g
}

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
		id: id("scale-cpu"), title: "Processor", y: "share of all cores, %", wide: halfWide, tall: 240, most: 1, factor: 100,
		caption: "Processor time of the server as a share of the machine’s cores; the line is at " + percent(fullShare) + ".", line: fullShare,
	}, l, v.cpuShare))
	writes, ok := v.scalePlot(scalePanel{
		id: id("scale-iops"), title: "Write IOPS", y: "writes to disk a second", wide: halfWide, tall: 240, factor: 1,
		caption: "Writes of the server to disk a second.",
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
		lo, hi = 0, max(hi*1.06, p.most)
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
		if e, ok := d.rungs(v, one, v.over(l, one, figure), x, y); ok {
			ends = append(ends, e)
		}
	}
	if p.names {
		d.names(ends, x.to+14, curveTop, p.tall-curveFoot, curveRight-40)
	}
	return d.finish(p.id, p.title, p.caption), true
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
