package result

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"kurabe/lab/stat"
	"kurabe/lab/study"
)

// MaxUnsettledShare is the largest share of the trials of a comparison that may be
// unsettled: beyond a quarter the estimate may be that of the warm-up. It is declared
// here, before any study, and looks at no figure.
const MaxUnsettledShare = 0.25

// Estimate is what the blocks say of one metric of one variant under one workload.
type Estimate struct {
	Metric, Variant, Workload string
	// Ratio is the variant's metric divided by the baseline's. Its estimate is NaN
	// without a pair, its interval below stat.MinPairs of them.
	Ratio stat.Ratio
	// A is the median of the baseline, B that of the variant, over the blocks that the
	// ratio is of and in the metric's unit; NaN without a pair.
	A, B float64
	// SD is the standard deviation of the log-ratios; NaN below two pairs.
	SD float64
	// Verdict is of the primary metric only, "" of all others.
	Verdict stat.Verdict
	Primary bool
	// P is the probability of such ranks when nothing differs; NaN without a pair. Holm
	// is P adjusted for the number of exploratory estimates; of the primary metric and
	// of twins, which are none, it is P.
	P, Holm float64
	Twin    bool
	// Why says what was left out, and of a verdict that is withheld the reason.
	Why string
	// MoreBlocks is about how many blocks an undecided verdict still lacks.
	MoreBlocks int
}

// cell is a variant under a workload.
type cell struct{ variant, workload string }

// blocks are by number the last trial of a cell that counts.
type blocks map[int]*Sheet

// Estimates compares every variant with the baseline: the primary metric of each workload
// first, then the exploratory ones; by workload; the twin before the other variants. Variants that the
// target cannot have, or the engine, are left out.
func Estimates(f *File, level float64) ([]Estimate, error) {
	measured, err := measure(f, level)
	if err != nil {
		return nil, fmt.Errorf("estimate: %w", err)
	}
	all := make([]Estimate, len(measured))
	for i, m := range measured {
		all[i] = m.Estimate
	}
	return all, nil
}

// measured is an estimate and what it is of.
type measured struct {
	Estimate
	pairing
}

func measure(f *File, level float64) ([]measured, error) {
	if !(level > 0 && level < 1) {
		return nil, fmt.Errorf("the level %v is not between 0 and 1", level)
	}
	d := &f.Study.Definition
	table := countedTrials(f)
	var all []measured
	for _, q := range questions(f) {
		metric, err := FindMetric(q.metric)
		if err != nil {
			return nil, err
		}
		var twin *Estimate
		for _, variant := range comparedVariants(f) {
			e, p := estimate(metric, table[cell{d.Baseline, q.workload}], table[cell{variant, q.workload}])
			e.Variant, e.Workload = variant, q.workload
			e.Primary, e.Twin = q.primary, variant == study.Twin(d.Baseline)
			if err := e.fill(p, level); err != nil {
				return nil, fmt.Errorf("%s of %s under %s: %w", q.metric, variant, q.workload, err)
			}
			if e.Twin {
				twin = e
			}
			if e.Primary {
				e.judge(d.PrimaryOf(q.workload).Margin, metric.Better, twin, p)
			}
			all = append(all, measured{*e, p})
		}
	}
	adjust(all)
	return all, sheetError(table)
}

// question is a metric that is asked for under a workload.
type question struct {
	metric, workload string
	primary          bool
}

// questions are those of a file, in the order of Estimates.
func questions(f *File) []question {
	d := &f.Study.Definition
	var first, others []question
	for _, name := range studyMetrics(d) {
		for _, w := range d.Workloads {
			if applies(f, w.Name, w.Engines) && name != d.PrimaryOf(w.Name).Metric && slices.Contains(d.MetricsOf(w.Name), name) {
				others = append(others, question{name, w.Name, false})
			}
		}
	}
	for _, w := range d.Workloads {
		if applies(f, w.Name, w.Engines) {
			first = append(first, question{d.PrimaryOf(w.Name).Metric, w.Name, true})
		}
	}
	return append(first, others...)
}

// studyMetrics are the primary metric and then the others, each once: those of the study,
// then those that are of some workload only.
func studyMetrics(d *study.Study) []string {
	all := d.MetricsOf("")
	for _, w := range d.Workloads {
		if name := d.PrimaryOf(w.Name).Metric; !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// comparedVariants are all but the baseline, its twin first.
func comparedVariants(f *File) []string {
	d := &f.Study.Definition
	all := []string{study.Twin(d.Baseline)}
	for _, v := range d.Variants {
		if v.Name != d.Baseline && v.Name != all[0] && applies(f, v.Name, v.Engines) {
			all = append(all, v.Name)
		}
	}
	return all
}

func applies(f *File, name string, engines []string) bool {
	_, unsupported := f.Study.Unsupported[name]
	return !unsupported && (len(engines) == 0 || slices.Contains(engines, f.Study.Engine))
}

func countedTrials(f *File) map[cell]blocks {
	table := map[cell]blocks{}
	for i := range f.Trials {
		t := &f.Trials[i]
		if !t.Counts() {
			continue
		}
		c := cell{t.Variant, t.Workload}
		if table[c] == nil {
			table[c] = blocks{}
		}
		table[c][t.Block] = NewSheet(t)
	}
	return table
}

func sheetError(table map[cell]blocks) error {
	for _, b := range table {
		for _, s := range b {
			if s.Err() != nil {
				return s.Err()
			}
		}
	}
	return nil
}

// pairing is what two cells have in the same blocks.
type pairing struct {
	a, b      []float64 // baseline and variant
	unsettled int       // of the trials that a and b are of
	blocks    int       // that have a trial of either
	lone      int       // of these, have only one of them
	absent    int       // lack the metric
	zero      int       // have a 0, which has no ratio
}

func pairUp(metric string, a, b blocks) pairing {
	var p pairing
	for _, n := range blockNumbers(a, b) {
		p.blocks++
		x, y := a[n], b[n]
		if x == nil || y == nil {
			p.lone++
			continue
		}
		u, hasU := x.Value(metric)
		v, hasV := y.Value(metric)
		switch {
		case !hasU || !hasV:
			p.absent++
		case u <= 0 || v <= 0:
			p.zero++
		default:
			p.a, p.b = append(p.a, u), append(p.b, v)
			p.unsettled += bit(x.trial.Status == StatusUnsettled) + bit(y.trial.Status == StatusUnsettled)
		}
	}
	return p
}

// blockNumbers are in order, so that sums do not depend on the order of a map.
func blockNumbers(a, b blocks) []int {
	var all []int
	for n := range a {
		all = append(all, n)
	}
	for n := range b {
		if a[n] == nil {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	return all
}

// why says what the pairs are not of, "" when every block is in them.
func (p pairing) why(m Metric) string {
	var parts []string
	of := func(n int, text string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d of %d blocks %s", n, p.blocks, text))
		}
	}
	if p.blocks == 0 {
		return "no block has a trial that counts"
	}
	of(p.lone, "lack a trial of one of the two that counts")
	if m.LeastRequests > 0 {
		of(p.absent, fmt.Sprintf("did not measure it, or with fewer than the %d requests that it takes", m.LeastRequests))
	} else {
		of(p.absent, "did not measure it")
	}
	of(p.zero, "have a value of 0, which has no ratio")
	return strings.Join(parts, "; ")
}

func estimate(metric Metric, a, b blocks) (*Estimate, pairing) {
	p := pairUp(metric.Name, a, b)
	return &Estimate{Metric: metric.Name, Why: p.why(metric)}, p
}

// logs are the log-ratios of the pairs.
func (p pairing) logs() []float64 {
	logs := make([]float64, len(p.a))
	for i := range logs {
		logs[i] = math.Log(p.b[i]) - math.Log(p.a[i])
	}
	return logs
}

func (e *Estimate) fill(p pairing, level float64) error {
	if err := stat.CheckPairs(p.b, p.a); err != nil {
		return err
	}
	logs := p.logs()
	e.Ratio = stat.PairedRatio(p.b, p.a, level)
	e.A, e.B, e.SD = stat.Median(p.a), stat.Median(p.b), deviation(logs)
	e.P = math.NaN()
	if len(logs) > 0 {
		e.P = stat.SignedRankP(logs)
	}
	e.Holm = e.P
	return nil
}

// deviation is the sample standard deviation.
func deviation(values []float64) float64 {
	if len(values) < 2 {
		return math.NaN()
	}
	n, mean, squares := float64(len(values)), 0.0, 0.0
	for _, v := range values {
		mean += v / n
	}
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	return math.Sqrt(squares / (n - 1))
}

// judge gives the verdict of the primary metric, as the lab's DESIGN says. A twin is
// judged as any other, by itself.
func (e *Estimate) judge(margin float64, better stat.Direction, twin *Estimate, p pairing) {
	pairs := len(p.a)
	floor, holds, why := stat.Floor(twin.Ratio, margin)
	e.Verdict = stat.JudgeOver(e.Ratio, margin, floor, better)
	switch {
	case pairs == 0:
		e.Verdict = stat.Withheld
	case p.zero > 0:
		// Those blocks may be the worst of all, so what is left says nothing.
		e.Verdict = stat.Withheld
	case e.Verdict == stat.DirectionOnly:
		e.MoreBlocks = stat.MoreBlocks(e.Ratio, margin)
	case float64(p.unsettled) > MaxUnsettledShare*float64(2*pairs):
		e.withhold(fmt.Sprintf("%d of %d trials were unsettled, more than %.0f %%", p.unsettled, 2*pairs, 100*MaxUnsettledShare))
	case !holds:
		e.withhold(why)
	case !e.Twin && twin.Verdict == stat.Withheld:
		e.withhold("of the baseline's twin " + twin.Why)
	case e.Verdict == stat.Undecided:
		e.MoreBlocks = max(stat.MoreBlocks(e.Ratio, margin), stat.MoreBlocks(twin.Ratio, margin))
	}
	if e.Verdict == stat.Undecided && floor > margin && !e.Twin {
		e.note(fmt.Sprintf("on this machine the baseline and its twin differ by up to %.1f %%, and less is not told from none", 100*floor))
	}
}

// withhold puts its reason before what else there is to say.
func (e *Estimate) withhold(why string) {
	e.Verdict = stat.Withheld
	e.note(why)
}

func (e *Estimate) note(why string) {
	if e.Why != "" {
		why += "; " + e.Why
	}
	e.Why = why
}

// adjust fills Holm in for the exploratory estimates, which are one family.
func adjust(all []measured) {
	var p []float64
	var of []*Estimate
	for i := range all {
		if e := &all[i].Estimate; !e.Primary && !e.Twin {
			p, of = append(p, e.P), append(of, e)
		}
	}
	for i, holm := range stat.Holm(p) {
		of[i].Holm = holm
	}
}
