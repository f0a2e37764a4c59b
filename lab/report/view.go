package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"kurabe/lab/result"
	"kurabe/lab/stat"
	"kurabe/lab/study"
)

// Level is the confidence of every interval that is shown.
const Level = 0.95

// Bounds of what is shown. A study beyond them is shown in part, and says so.
const (
	maxVariants  = 64
	maxWorkloads = 64
	maxPanels    = 12 // charts of one kind, one for each workload
)

// view is a file as the report looks at it: names resolved, estimates by cell. It is
// made once and never changed.
type view struct {
	file      *result.File
	def       *study.Study
	variants  []variant
	workloads []study.Workload // of the definition, what cannot be had left out
	absent    []variant        // that the target cannot have
	missing   []missing        // these and such workloads, with the reasons
	estimates []result.Estimate
	byCell    map[cellMetric]*result.Estimate
	trials    map[cellName][]*result.Trial // in order of execution
	sheets    map[*result.Trial]*result.Sheet
	blocks    int // with a trial that counts
}

// variant is a column of everything: the baseline first, then its twin.
type variant struct {
	study.Variant
	label string // for people; clean
	look  look
}

// missing is what the target could not have, and why.
type missing struct{ Name, Reason string }

type cellName struct{ variant, workload string }

type cellMetric struct {
	cellName
	metric string
}

func newView(f *result.File) (*view, error) {
	estimates, err := result.Estimates(f, Level)
	if err != nil {
		return nil, fmt.Errorf("report the study %s: %w", clean(f.Study.Definition.Name), err)
	}
	v := &view{
		file: f, def: &f.Study.Definition, estimates: estimates,
		byCell: map[cellMetric]*result.Estimate{}, trials: map[cellName][]*result.Trial{},
		sheets: map[*result.Trial]*result.Sheet{},
	}
	for n := range v.estimates {
		e := &v.estimates[n]
		v.byCell[cellMetric{cellName{e.Variant, e.Workload}, e.Metric}] = e
	}
	seen := map[int]bool{}
	for n := range f.Trials {
		t := &f.Trials[n]
		c := cellName{t.Variant, t.Workload}
		v.trials[c] = append(v.trials[c], t)
		v.sheets[t] = result.NewSheet(t)
		if t.Counts() && !seen[t.Block] {
			seen[t.Block] = true
			v.blocks++
		}
	}
	v.order()
	return v, nil
}

// order puts baseline and twin first and leaves out what the target cannot have.
func (v *view) order() {
	var others []study.Variant
	head := make([]study.Variant, 0, 2)
	for _, x := range v.def.Variants {
		switch {
		case x.Name == v.def.Baseline:
			head = slices.Insert(head, 0, x)
		case x.TwinOf != "":
			head = append(head, x)
		default:
			others = append(others, x)
		}
	}
	for n, x := range append(head, others...) {
		if !v.asked(x.Engines) || n >= maxVariants {
			continue
		}
		one := variant{Variant: x, label: v.name(x), look: lookOf(n)}
		if reason, no := v.file.Study.Unsupported[x.Name]; no {
			v.absent = append(v.absent, one)
			v.missing = append(v.missing, missing{one.label, reasonWords(reason)})
			continue
		}
		v.variants = append(v.variants, one)
	}
	for _, w := range v.def.Workloads {
		if !v.asked(w.Engines) {
			continue
		}
		if reason, no := v.file.Study.Unsupported[w.Name]; no {
			v.missing = append(v.missing, missing{workloadTitle(w), reasonWords(reason)})
			continue
		}
		if len(v.workloads) < maxWorkloads {
			v.workloads = append(v.workloads, w)
		}
	}
}

// asked tells whether something that is for these engines only is for the file's.
func (v *view) asked(engines []string) bool {
	return len(engines) == 0 || slices.Contains(engines, v.file.Study.Engine)
}

// name is what people call a variant. The twin has the title of its baseline, and the
// mark of a twin.
func (v *view) name(x study.Variant) string {
	if x.TwinOf != "" {
		base := x.TwinOf
		for _, b := range v.def.Variants {
			if b.Name == base && b.Title != "" {
				base = b.Title
			}
		}
		return study.Twin(label(base)) // the mark must not be cut off
	}
	return label(orElse(x.Title, x.Name))
}

// maxLabel bounds a name in columns: it is written beside every mark of every chart.
const maxLabel = 100

// label makes a name fit to be shown.
func label(s string) string { return cut(clean(s), maxLabel) }

func workloadTitle(w study.Workload) string {
	return label(orElse(w.Title, w.Name))
}

func (v *view) isBaseline(x variant) bool { return x.Name == v.def.Baseline }

// maxReason bounds a reason in columns: servers write long errors.
const maxReason = 400

func reasonWords(s string) string { return cut(clean(s), maxReason) }

// label is the name of a variant for people, of one that is not shown too.
func (v *view) label(name string) string {
	for _, x := range slices.Concat(v.variants, v.absent) {
		if x.Name == name {
			return x.label
		}
	}
	return label(name)
}

// lookOf is how a variant is drawn.
func (v *view) lookOf(name string) look {
	for _, x := range v.variants {
		if x.Name == name {
			return x.look
		}
	}
	return lookOf(maxVariants)
}

// estimate is that of a cell; nil for the baseline and where nothing was measured.
func (v *view) estimate(metric, variant, workload string) *result.Estimate {
	return v.byCell[cellMetric{cellName{variant, workload}, metric}]
}

// counted are the trials of a cell that count, the last of each block.
func (v *view) counted(variant, workload string) []*result.Trial {
	var out []*result.Trial
	for _, t := range v.trials[cellName{variant, workload}] {
		if !t.Counts() {
			continue
		}
		out = slices.DeleteFunc(out, func(o *result.Trial) bool { return o.Block == t.Block })
		out = append(out, t)
	}
	return out
}

// failedWhy is why the last trial of a cell failed, when none of them counts.
func (v *view) failedWhy(variant, workload string) string {
	why := ""
	for _, t := range v.trials[cellName{variant, workload}] {
		switch {
		case t.Counts():
			return ""
		case t.Status == result.StatusFailed:
			why = reasonWords(t.Reason)
		}
	}
	return why
}

// value is a metric of a trial.
func (v *view) value(t *result.Trial, metric string) (float64, bool) {
	return v.sheets[t].Value(metric)
}

// median of a metric over the trials of a cell that count, and over how many.
func (v *view) median(metric, variant, workload string) (float64, int) {
	var all []float64
	for _, t := range v.counted(variant, workload) {
		if x, ok := v.value(t, metric); ok {
			all = append(all, x)
		}
	}
	return stat.Median(all), len(all)
}

// medianTrial is the trial of a cell that counts and whose primary metric is nearest to
// the median; nil without one.
func (v *view) medianTrial(variant, workload string) *result.Trial {
	metric := v.primary(workload).name
	middle, n := v.median(metric, variant, workload)
	var best *result.Trial
	nearest := math.Inf(1)
	for _, t := range v.counted(variant, workload) {
		x, ok := v.value(t, metric)
		switch far := math.Abs(x - middle); {
		case n == 0 && best == nil:
			best = t
		case ok && far < nearest:
			best, nearest = t, far
		}
	}
	return best
}

// judged is the phase that the primary metric is about.
func (v *view) judged(t *result.Trial) *result.Phase {
	if p := t.Phase(strings.TrimPrefix(v.phaseSuffix(t.Workload), "@")); p != nil {
		return p
	}
	return t.Main()
}

// phaseSuffix is that phase at the end of a metric's name, "@during"; "" for the main one.
func (v *view) phaseSuffix(workload string) string {
	name := v.primary(workload).name
	at := strings.LastIndexByte(name, '@')
	if at < 0 {
		return ""
	}
	suffix, _, _ := strings.Cut(name[at:], "/")
	return suffix
}

// primary is the metric that decides under a workload.
func (v *view) primary(workload string) measure { return measureOf(v.def.PrimaryOf(workload).Metric) }

// margin is the one declared for it.
func (v *view) margin(workload string) float64 { return v.def.PrimaryOf(workload).Margin }

// measure is a metric with its words.
type measure struct {
	name   string
	title  string // "throughput"
	unit   string
	better stat.Direction
}

// measureOf finds the words of a metric. A name that the table lacks, as a published
// figure of something that the lab does not measure, is its own title.
func measureOf(name string) measure {
	known, err := result.FindMetric(name)
	if err != nil {
		return measure{name: name, title: clean(name), better: stat.LowerIsBetter}
	}
	return measure{name: name, title: clean(known.Title), unit: known.Unit, better: known.Better}
}
