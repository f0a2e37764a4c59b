package report

import (
	"slices"

	"kurabe/lab/result"
	"kurabe/lab/study"
)

// phaseMetrics are the columns of the table of phases, in the published order; the last
// is of the change itself and stands in the row of the phase during.
var phaseMetrics = []string{"qps", "resp_p95", "resp_min", "resp_avg", "resp_max", "gap_max", changeMetric}

// phaseTitles are short, for a terminal too.
var phaseTitles = []string{"statements/s", "p95, ms", "min", "avg", "max", "gap, ms", "change, s"}

const changeMetric = "change_s"

var phaseNames = []string{result.PhaseIdle, result.PhaseDuring, result.PhaseAfter}

// hasPhases says whether the study makes changes while its load runs.
func (v *view) hasPhases() bool { return study.HasChanges(v.def) }

// phases is the table of a study with changes in the shape of the published one: a row
// for what the writers saw before, during and after each change. The twin has its row in
// the comparison.
func (v *view) phases(w study.Workload) *grid {
	g := &grid{
		Title: "What the load saw, by phase", Columns: []string{"variant", "phase", "from"}, Names: 3,
		Caption: "In the shape of the published table. Measured: medians over the trials that count. Statements are counted without the begin and the end of transactions; times are of responses, in ms; gap: the longest time without an answer.",
	}
	g.Columns = append(g.Columns, phaseTitles...)
	rows := v.published(w.Name)
	for _, x := range slices.Concat(v.variants, v.absent) {
		if x.TwinOf != "" {
			continue
		}
		for _, phase := range phaseNames {
			for _, source := range sources(rows) {
				for _, p := range publishedFor(rows, source, x.Name) {
					g.phase(orElse(label(p.Label), x.label), phase, v.publishedIn(source), true, func(name string) string { return publishedNum(p, name) })
				}
			}
			g.phase(x.label, phase, "measured", false, func(name string) string {
				middle, n := v.median(name, x.Name, w.Name)
				if n == 0 {
					return none
				}
				return num(middle)
			})
		}
	}
	if len(g.Rows) == 0 {
		return nil
	}
	return g
}

// phase adds a row, unless nothing is known of it.
func (g *grid) phase(name, phase, from string, muted bool, figure func(metric string) string) {
	row := gridRow{Cells: []string{name, phase, from}, Muted: muted}
	known := false
	for _, metric := range phaseMetrics {
		cell := none
		switch {
		case metric != changeMetric:
			cell = figure(metric + "@" + phase)
		case phase == result.PhaseDuring:
			cell = figure(metric)
		}
		known = known || cell != none
		row.Cells = append(row.Cells, cell)
	}
	if known {
		g.Rows = append(g.Rows, row)
	}
}
