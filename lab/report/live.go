package report

import (
	"fmt"
	"strings"

	"kurabe/lab/result"
	"kurabe/lab/study"
)

// noEstimate is what is known before any block has a pair.
const noEstimate = "no estimate yet"

// lineWidth bounds Line, in columns.
const lineWidth = 240

// Live is what is known of a study that goes on, for a display. Metrics have their short
// names in it. It is computed once and drawn as often as is wanted.
type Live struct{ groups []liveGroup }

// NewLive computes the estimates of what a file has so far.
func NewLive(f *result.File) Live {
	v, err := newView(f)
	if err != nil {
		return Live{} // the report at the end says why
	}
	var l Live
	for _, w := range v.workloads {
		if g := v.liveGroup(w); len(g.rows) > 0 {
			l.groups = append(l.groups, g)
		}
	}
	return l
}

// Line is all of it in one line for a log; what does not fit is counted.
func (l Live) Line() string {
	text := ""
	groups := l.groups
	for n, g := range groups {
		head := g.metric + ": "
		if len(groups) > 1 {
			head = g.workload + ", " + head
		}
		if n > 0 {
			head = "; " + head
		}
		for k, r := range g.rows {
			part := head + r.name + " " + r.figures
			if k > 0 {
				part = " · " + r.name + " " + r.figures
			}
			more := fmt.Sprintf("; %d more", rowsFrom(groups[n:])-k)
			if text != "" && cells(text+part+more) > lineWidth {
				return cut(text+more, lineWidth)
			}
			text += part
		}
	}
	return cut(orElse(text, noEstimate), lineWidth)
}

// Lines are the same for a display that is drawn over: a line for each variant, at most
// so many lines of so many columns.
func (l Live) Lines(width, most int) []string {
	var all []string
	left := rowsFrom(l.groups)
	for _, g := range l.groups {
		all = append(all, fmt.Sprintf("%s under %s, %s:", g.metric, g.workload, plural(int64(g.blocks), "block", "blocks")))
		widest := 0
		for _, r := range g.rows {
			widest = max(widest, cells(r.name))
		}
		// A name gives way to its figures.
		widest = max(1, min(widest, width-g.widest()-2*len(gap)))
		for _, r := range g.rows {
			all = append(all, gap+padRight(cut(r.name, widest), widest)+gap+r.figures)
		}
	}
	if len(all) == 0 {
		all = []string{noEstimate}
	}
	if len(all) > most {
		all = all[:max(most-1, 0)]
		for _, line := range all {
			if strings.HasPrefix(line, gap) {
				left--
			}
		}
		if most > 0 {
			all = append(all, fmt.Sprintf("%s%d more, which the report will have", gap, left))
		}
	}
	for n := range all {
		all[n] = cut(all[n], width)
	}
	return all
}

// liveGroup is what is known under one workload, the twin last: it says how far to trust
// the others and is no answer.
type liveGroup struct {
	workload, metric string
	blocks           int // the most of any variant
	rows             []liveRow
}

type liveRow struct{ name, figures string }

func (g liveGroup) widest() int {
	widest := 0
	for _, r := range g.rows {
		widest = max(widest, cells(r.figures))
	}
	return widest
}

func rowsFrom(groups []liveGroup) int {
	n := 0
	for _, g := range groups {
		n += len(g.rows)
	}
	return n
}

func (v *view) liveGroup(w study.Workload) liveGroup {
	g := liveGroup{workload: label(w.Name), metric: v.primary(w.Name).name}
	var twins []liveRow
	for _, x := range v.variants {
		e := v.estimate(g.metric, x.Name, w.Name)
		if v.isBaseline(x) || e == nil || e.Ratio.Pairs == 0 {
			continue
		}
		g.blocks = max(g.blocks, e.Ratio.Pairs)
		r := liveRow{label(x.Name), ratio(e.Ratio)}
		if hasInterval(e.Ratio) {
			r.figures += " " + interval(e.Ratio)
		}
		if x.TwinOf != "" {
			twins = append(twins, r)
		} else {
			g.rows = append(g.rows, r)
		}
	}
	g.rows = append(g.rows, twins...)
	return g
}
