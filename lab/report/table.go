package report

import (
	"math"
	"slices"
	"strings"

	"kurabe/lab/result"
	"kurabe/lab/stat"
	"kurabe/lab/study"
)

// comparison is the table of one workload: what was published beside what was measured.
type comparison struct {
	Workload string
	Load     string
	Metric   string // with its unit
	Sources  []string
	Rows     []comparisonRow
	Noise    string
}

// notSupported is the verdict of a variant that the target cannot have.
const notSupported = "not supported"

// comparisonRow is one variant. Published has one text for each source.
type comparisonRow struct {
	Label     string
	Look      look
	Published []string
	Median    string
	Trials    int
	Ratio     string
	Interval  string
	Verdict   string
	Class     string
	Note      string // why there is no figure
}

func (v *view) comparison(w study.Workload) comparison {
	rows, metric := v.published(w.Name), v.primary(w.Name)
	c := comparison{
		Workload: workloadTitle(w), Load: loadWords(w), Metric: withUnit(metric.title, metric.unit),
		Sources: sources(rows), Noise: v.noise(w.Name),
	}
	for _, x := range v.variants {
		c.Rows = append(c.Rows, v.comparisonRow(x, w, rows, c.Sources))
	}
	// A variant that cannot be had keeps its row: its published figures are an answer.
	for _, x := range v.absent {
		c.Rows = append(c.Rows, comparisonRow{
			Label: x.label, Look: x.look, Published: v.publishedTexts(metric.name, x.Name, rows, c.Sources),
			Median: none, Ratio: none, Interval: none, Verdict: notSupported, Class: "open",
			Note: reasonWords(v.file.Study.Unsupported[x.Name]),
		})
	}
	c.dropEmptySources()
	return c
}

// dropEmptySources removes the columns of sources that say nothing of the primary
// metric under this workload; their other figures have a table of their own.
func (c *comparison) dropEmptySources() {
	for n := len(c.Sources) - 1; n >= 0; n-- {
		if slices.ContainsFunc(c.Rows, func(r comparisonRow) bool { return r.Published[n] != none }) {
			continue
		}
		c.Sources = slices.Delete(c.Sources, n, n+1)
		for k := range c.Rows {
			c.Rows[k].Published = slices.Delete(c.Rows[k].Published, n, n+1)
		}
	}
}

func (v *view) comparisonRow(x variant, w study.Workload, rows []study.Published, from []string) comparisonRow {
	metric := v.primary(w.Name).name
	r := comparisonRow{
		Label: x.label, Look: x.look, Published: v.publishedTexts(metric, x.Name, rows, from),
		Ratio: none, Interval: none, Verdict: none, Class: "open",
	}
	middle, n := v.median(metric, x.Name, w.Name)
	r.Median, r.Trials = num(middle), n
	switch e := v.estimate(metric, x.Name, w.Name); {
	case v.isBaseline(x):
		r.Ratio, r.Verdict = "1", "baseline"
	case n == 0 && len(v.trials[cellName{x.Name, w.Name}]) == 0:
		r.Verdict = "not measured"
	case n == 0 && v.failedWhy(x.Name, w.Name) != "":
		r.Verdict, r.Note = result.StatusFailed, v.failedWhy(x.Name, w.Name)
	case e == nil || e.Ratio.Pairs == 0:
		r.Verdict = "nothing to compare"
		if e != nil {
			r.Note = clean(e.Why)
		}
	default:
		r.Ratio, r.Interval = ratio(e.Ratio), interval(e.Ratio)
		if r.Verdict, r.Class = string(e.Verdict), verdictClass(e.Verdict); x.TwinOf != "" {
			r.Verdict, r.Class = "noise floor", "open"
		}
		if e.Verdict == stat.Withheld && clean(e.Why) != v.withheldWhy(w.Name) {
			r.Note = clean(e.Why)
		}
	}
	return r
}

// publishedTexts are the figures of each source for a variant: the primary metric, the
// ratio, or both.
func (v *view) publishedTexts(metric, name string, rows []study.Published, from []string) []string {
	out := make([]string, 0, len(from))
	for _, source := range from {
		var parts []string
		for _, p := range publishedFor(rows, source, name) {
			value, has := publishedValue(p, metric)
			r, hasRatio := publishedRatio(p, rows, metric, v.def.Baseline)
			switch {
			case has && hasRatio:
				parts = append(parts, given(value)+" (×"+r+")")
			case has:
				parts = append(parts, given(value))
			case hasRatio:
				parts = append(parts, "×"+r)
			}
		}
		out = append(out, orElse(strings.Join(parts, "; "), none))
	}
	return out
}

func withUnit(title, unit string) string {
	if unit == "" || strings.Contains(title, unit) {
		return title
	}
	return title + " (" + unit + ")"
}

// grid is a table of texts. The first column names the row.
type grid struct {
	Title   string
	Caption string
	Columns []string
	Names   int // of the columns that are text; those after them are figures
	Rows    []gridRow
	More    string // what is left out
}

// gridRow has as many cells as the table has columns. Muted rows stand back: figures of
// others beside ours.
type gridRow struct {
	Cells []string
	Muted bool
}

// maxColumns bounds a table of figures.
const maxColumns = 12

// figures is the table in the shape of the published one: its metrics as columns, each
// variant's published rows above the measured row; nil when no metric was published.
func (v *view) figures(w study.Workload) *grid {
	if v.hasPhases() {
		return v.phases(w)
	}
	rows := v.published(w.Name)
	metrics := v.publishedMetrics(w.Name, rows)
	if len(metrics) == 0 || len(metrics) == 1 && metrics[0] == v.primary(w.Name).name {
		return nil
	}
	g := &grid{Title: "In the shape of the published table", Columns: []string{"variant", "from"}, Names: 2}
	if len(metrics) > maxColumns {
		g.More = plural(int64(len(metrics)-maxColumns), "column is", "columns are") + " left out"
		metrics = metrics[:maxColumns]
	}
	for _, name := range metrics {
		m := measureOf(name)
		g.Columns = append(g.Columns, withUnit(m.title, m.unit))
	}
	from := sources(rows)
	for _, x := range slices.Concat(v.variants, v.absent) {
		for _, source := range from {
			for _, p := range publishedFor(rows, source, x.Name) {
				cells := []string{orElse(label(p.Label), x.label), v.publishedIn(source)}
				for _, name := range metrics {
					cells = append(cells, publishedNum(p, name))
				}
				g.Rows = append(g.Rows, gridRow{Cells: cells, Muted: true})
			}
		}
		cells := []string{x.label, "measured"}
		if slices.ContainsFunc(v.absent, func(a variant) bool { return a.Name == x.Name }) {
			cells[1] = notSupported
		}
		for _, name := range metrics {
			middle, _ := v.median(name, x.Name, w.Name)
			cells = append(cells, num(middle))
		}
		g.Rows = append(g.Rows, gridRow{Cells: cells})
	}
	return g
}

func publishedNum(p study.Published, metric string) string {
	if x, ok := p.Values[metric]; ok {
		return given(x)
	}
	if x, ok := publishedValue(p, metric); ok {
		return num(x) // it follows from others
	}
	return none
}

// maxStatements bounds the table of statements.
const maxStatements = 60

// statements is the table of average latencies by statement; nil when the file has none.
// Statements are called by their text in the file, which need not be what it was called
// where it was published: both stand below each other by their numbers.
func (v *view) statements(w study.Workload) *grid {
	rows := v.published(w.Name)
	names, columns := v.statementNames(w.Name, rows)
	if names == nil {
		return nil
	}
	g := &grid{
		Title: "Average latency of each statement, ms", Columns: []string{"statement", "from"}, Names: 2,
		Caption: "Measured: the median over the trials that count of each trial’s average.",
	}
	if len(names) > maxStatements {
		g.More = plural(int64(len(names)-maxStatements), "statement is", "statements are") + " left out"
		names = names[:maxStatements]
	}
	for _, x := range columns {
		g.Columns = append(g.Columns, x.label)
	}
	for _, name := range names {
		key := result.StatementMetric(name)
		for _, source := range sources(rows) {
			g.add(label(name), v.publishedIn(source), true, columns, func(x variant) string {
				for _, p := range publishedFor(rows, source, x.Name) {
					if value, ok := p.Values[key]; ok {
						return given(value)
					}
				}
				return none
			})
		}
		g.add(label(name), "measured", false, columns, func(x variant) string {
			middle, _ := v.median(key, x.Name, w.Name)
			return num(middle)
		})
	}
	return g
}

// add adds a row of figures of variants, unless there is none.
func (g *grid) add(name, from string, muted bool, columns []variant, figure func(variant) string) {
	row := gridRow{Cells: []string{name, from}, Muted: muted}
	for _, x := range columns {
		row.Cells = append(row.Cells, figure(x))
	}
	if slices.ContainsFunc(row.Cells[2:], func(s string) bool { return s != none }) {
		g.Rows = append(g.Rows, row)
	}
}

// statementNames are those that were measured under a workload and those published of
// it, in order, and the variants that have any; nil when nothing was measured.
func (v *view) statementNames(workload string, rows []study.Published) ([]string, []variant) {
	var names []string
	for _, name := range result.Statements(v.file) {
		if _, n := v.median(result.StatementMetric(name), v.def.Baseline, workload); n > 0 {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	columns := slices.Clone(v.variants)
	for _, p := range rows {
		for key := range p.Values {
			name, ok := strings.CutPrefix(strings.TrimSuffix(key, ":avg"), "stmt:")
			if !ok {
				continue
			}
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
			for _, x := range v.absent {
				if x.Name == p.Variant && !slices.ContainsFunc(columns, func(c variant) bool { return c.Name == x.Name }) {
					columns = append(columns, x)
				}
			}
		}
	}
	slices.Sort(names)
	return names, columns
}

// exploratory is the table of all metrics but the primary one: their ratios, and the
// chance of so much by luck, adjusted for looking at so many; nil without any.
func (v *view) exploratory(w study.Workload) *grid {
	g := &grid{
		Title:   "Other metrics, exploratory",
		Caption: "Median, × the ratio to the baseline with its 95 % interval, and p of the signed-rank test, adjusted after Holm for the number of estimates looked at. No verdict hangs on these.",
		Columns: []string{"metric", v.label(v.def.Baseline)}, Names: 1,
	}
	for _, x := range v.variants {
		if !v.isBaseline(x) {
			g.Columns = append(g.Columns, x.label)
		}
	}
	var without []string
	for _, name := range v.def.MetricsOf(w.Name)[1:] {
		m := measureOf(name)
		base, n := v.median(name, v.def.Baseline, w.Name)
		row := gridRow{Cells: []string{m.title, quantity(base, m.unit)}}
		for _, x := range v.variants {
			if v.isBaseline(x) {
				continue
			}
			middle, some := v.median(name, x.Name, w.Name)
			cell := quantity(middle, m.unit)
			if e := v.estimate(name, x.Name, w.Name); e != nil && e.Ratio.Pairs > 0 {
				cell += " ×" + ratio(e.Ratio) + "\n" + strings.ReplaceAll(interval(e.Ratio), " ", "\u00a0") + "\np " + probability(e.Holm)
			}
			row.Cells = append(row.Cells, cell)
			n += some
		}
		if n == 0 {
			without = append(without, m.title)
			continue
		}
		g.Rows = append(g.Rows, row)
	}
	if len(without) > 0 {
		g.More = "Not measured, or with too few requests: " + strings.Join(without, "; ")
	}
	if len(g.Rows) == 0 {
		return nil
	}
	return g
}

// probability has two digits, and none where it is smaller than anybody should believe.
func probability(p float64) string {
	switch {
	case math.IsNaN(p):
		return none
	case p < 0.001:
		return "< 0.001"
	}
	return fixed(p, 3)
}

// resources are the metrics of the "why", in reading order.
var resources = []string{
	"cpu_per_tx", "context_switches_per_tx", "wal_per_tx", "fsyncs_per_tx", "read_bytes_per_tx", "write_bytes_per_tx",
	"lock_waits_per_tx", "lock_wait_s_per_tx",
}

// why is the table of what a transaction cost the server; nil when nothing was probed.
func (v *view) why(w study.Workload) *grid {
	g := &grid{
		Title: "Resources of one transaction", Columns: []string{"variant"}, Names: 1,
		Caption: "Medians over the trials that count; in brackets relative to the baseline’s. Waits for locks: InnoDB counts those for rows; those for MariaDB’s tables, and all of PostgreSQL’s, are sampled, so short ones are missed.",
	}
	var names []string
	for _, name := range resources {
		name += v.phaseSuffix(w.Name)
		if _, n := v.median(name, v.def.Baseline, w.Name); n > 0 {
			names = append(names, name)
			g.Columns = append(g.Columns, measureOf(name).title)
		}
	}
	if len(names) == 0 {
		return nil
	}
	for _, x := range v.variants {
		cells := []string{x.label}
		for _, name := range names {
			m := measureOf(name)
			middle, n := v.median(name, x.Name, w.Name)
			base, _ := v.median(name, v.def.Baseline, w.Name)
			cell := none
			if n > 0 {
				if cell = quantity(middle, m.unit); !v.isBaseline(x) && base > 0 {
					cell += " (×" + num(middle/base) + ")"
				}
			}
			cells = append(cells, cell)
		}
		g.Rows = append(g.Rows, gridRow{Cells: cells, Muted: x.TwinOf != ""})
	}
	return g
}

// topWaits is how many wait events of a variant are shown.
const topWaits = 5

// waits is the table of what active sessions waited for; nil without samples.
func (v *view) waits(w study.Workload) *grid {
	g := &grid{
		Title: "What sessions waited for", Columns: []string{"variant", "the most frequent, share of samples of active sessions", "samples"}, Names: 2,
		Caption: "All trials that count, the phase that the primary metric is about.",
	}
	for _, x := range v.variants {
		sum := map[string]int64{}
		total := int64(0)
		for _, t := range v.counted(x.Name, w.Name) {
			if p := v.judged(t); p != nil {
				for name, n := range p.Waits {
					sum[name] += int64(n)
					total += int64(n)
				}
			}
		}
		if total == 0 {
			continue
		}
		g.Rows = append(g.Rows, gridRow{Cells: []string{x.label, topShares(sum, total), count(total)}, Muted: x.TwinOf != ""})
	}
	if len(g.Rows) == 0 {
		return nil
	}
	return g
}

func topShares(sum map[string]int64, total int64) string {
	var names []string
	for name := range sum {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		if sum[a] != sum[b] {
			return int(min(1, max(-1, sum[b]-sum[a])))
		}
		return strings.Compare(a, b)
	})
	var parts []string
	for _, name := range names[:min(topWaits, len(names))] {
		if sum[name] == 0 {
			break
		}
		parts = append(parts, orElse(label(name), "on the processor")+" "+fixed(100*float64(sum[name])/float64(total), 1)+"\u00a0%")
	}
	return strings.Join(parts, ", ")
}
