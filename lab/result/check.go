package result

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"

	"kurabe/lab/stat"
	"kurabe/lab/study"
)

// Bounds of a record. They are far above what a run does; a file beyond them was not
// written by one.
const (
	maxBlock    = stat.MaxPairs // no estimate has more
	maxCells    = 10_000        // variants × workloads
	maxPhases   = 16
	maxBins     = 1_000_000 // 28 hours of 100 ms
	maxNameSize = 200
)

var idPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,79}$`)

var statuses = []string{StatusOK, StatusUnsettled, StatusRepeated, StatusFailed}

var phaseNames = []string{PhaseReset, PhaseWarm, PhaseMeasure, PhaseIdle, PhaseDuring, PhaseAfter}

// verify keeps the first thing that is wrong with a record.
type verify struct{ err error }

func (v *verify) that(ok bool, field, format string, args ...any) {
	if v.err == nil && !ok {
		v.err = fmt.Errorf(field+": "+format, args...)
	}
}

// number refuses what is no measured quantity.
func (v *verify) number(field string, x float64) {
	if v.err != nil {
		return
	}
	switch {
	case math.IsNaN(x) || math.IsInf(x, 0):
		v.err = fmt.Errorf("%s: %v is no number", field, x)
	case x < 0:
		v.err = fmt.Errorf("%s: %v is negative", field, x)
	}
}

func (v *verify) numbers(field string, values map[string]float64) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		v.number(field+"."+name, values[name])
	}
}

func (v *verify) counts(field string, values map[string]int64) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		v.that(values[name] >= 0, field+"."+name, "%d is negative", values[name])
	}
}

func (v *verify) histogram(field, text string) {
	if v.err != nil || text == "" {
		return
	}
	if _, err := DecodeHistogram(text); err != nil {
		v.err = fmt.Errorf("%s: %w", field, err)
	}
}

func checkStudy(s *Study) error {
	v := &verify{}
	if s.Format != Format {
		return formatError(s.Format)
	}
	v.that(idPattern.MatchString(s.ID), "id", "%q is not lower case letters, digits, - and _, 1 to 80 of them", s.ID)
	v.that(s.Engine != "", "engine", "it is not there")
	d := &s.Definition
	v.that(d.Name != "" && len(d.Name) <= maxNameSize, "definition.name", "it has %d bytes, not 1 to %d", len(d.Name), maxNameSize)
	v.primary("definition.primary", d.Primary)
	for i, w := range d.Workloads {
		if w.Primary != nil {
			v.primary(fmt.Sprintf("definition.workloads[%d].primary", i), *w.Primary)
		}
	}
	v.that(len(d.Variants) > 0, "definition.variants", "there is none")
	v.that(len(d.Workloads) > 0, "definition.workloads", "there is none")
	v.that(len(d.Variants)*len(d.Workloads) <= maxCells, "definition.variants", "more than %d cells", maxCells)
	for i, metric := range d.Metrics {
		v.metric(fmt.Sprintf("definition.metrics[%d]", i), metric)
	}
	var variants, workloads []string
	for _, x := range d.Variants {
		variants = append(variants, x.Name)
	}
	for _, x := range d.Workloads {
		workloads = append(workloads, x.Name)
	}
	v.names("definition.variants", variants)
	v.names("definition.workloads", workloads)
	v.that(slices.Contains(variants, d.Baseline), "definition.baseline", "%q is none of the variants", d.Baseline)
	return v.err
}

func (v *verify) primary(field string, p study.Primary) {
	v.that(p.Margin > 0 && p.Margin < 1, field+".margin", "%v is not between 0 and 1", p.Margin)
	v.metric(field+".metric", p.Metric)
}

func (v *verify) metric(field, name string) {
	if err := CheckMetric(name); err != nil {
		v.that(false, field, "%v", err)
	}
}

func (v *verify) names(field string, names []string) {
	seen := map[string]bool{}
	for i, name := range names {
		at := fmt.Sprintf("%s[%d].name", field, i)
		v.that(name != "" && len(name) <= maxNameSize, at, "it has %d bytes, not 1 to %d", len(name), maxNameSize)
		v.that(!seen[name], at, "%q is there twice", name)
		seen[name] = true
	}
}

// checker knows the cells of a study.
type checker struct{ variants, workloads map[string]bool }

func newChecker(s *Study) *checker {
	c := &checker{map[string]bool{study.Twin(s.Definition.Baseline): true}, map[string]bool{}}
	for _, x := range s.Definition.Variants {
		c.variants[x.Name] = true
	}
	for _, x := range s.Definition.Workloads {
		c.workloads[x.Name] = true
	}
	return c
}

func (c *checker) record(record any) error {
	v := &verify{}
	switch x := record.(type) {
	case *Settings:
		c.variant(v, x.Variant)
	case *Trial:
		c.trial(v, x)
	case *Event:
		c.variant(v, x.Variant)
		c.workload(v, x.Workload)
		v.block(x.Block)
		v.number("at_ms", x.AtMs)
		v.that(x.Position >= 0, "position", "%d is negative", x.Position)
		v.that(x.Kind != "", "kind", "it is not there")
	case *End:
		v.that(x.Reason != "", "reason", "it is not there")
	}
	return v.err
}

func (c *checker) variant(v *verify, name string) {
	v.that(c.variants[name], "variant", "the study has no %q", name)
}

func (c *checker) workload(v *verify, name string) {
	v.that(c.workloads[name], "workload", "the study has no %q", name)
}

func (v *verify) block(n int) {
	v.that(n >= 1 && n <= maxBlock, "block", "%d is not within 1 and %d", n, maxBlock)
}

func (c *checker) trial(v *verify, t *Trial) {
	v.block(t.Block)
	v.that(t.Position >= 0, "position", "%d is negative", t.Position)
	c.variant(v, t.Variant)
	c.workload(v, t.Workload)
	v.that(slices.Contains(statuses, t.Status), "status", "%q is none of %v", t.Status, statuses)
	v.that(t.Counts() || t.Reason != "", "reason", "a trial that does not count needs one")
	v.number("change_ms", t.ChangeMs)
	for _, name := range slices.Sorted(maps.Keys(t.Canary)) {
		v.number("canary."+name+"[0]", t.Canary[name][0])
		v.number("canary."+name+"[1]", t.Canary[name][1])
	}
	v.that(len(t.Phases) <= maxPhases, "phases", "%d are more than %d", len(t.Phases), maxPhases)
	seen := map[string]bool{}
	for i := range t.Phases {
		p, at := &t.Phases[i], fmt.Sprintf("phases[%d].", i)
		v.that(slices.Contains(phaseNames, p.Name), at+"name", "%q is none of %v", p.Name, phaseNames)
		v.that(!seen[p.Name], at+"name", "%q is there twice", p.Name)
		seen[p.Name] = true
		v.phase(at, p)
	}
	if t.Counts() {
		v.that(t.Main() != nil && t.Main().Load != nil, "phases", "a trial that counts has the load of its phase measure or idle")
	}
}

func (v *verify) phase(at string, p *Phase) {
	v.number(at+"start_ms", p.StartMs)
	v.number(at+"ms", p.Ms)
	v.numbers(at+"probes", p.Probes)
	for _, name := range slices.Sorted(maps.Keys(p.Waits)) {
		v.that(p.Waits[name] >= 0, at+"waits."+name, "%d is negative", p.Waits[name])
	}
	if p.Load != nil {
		v.load(at+"load.", p.Load)
	}
}

func (v *verify) load(at string, l *Load) {
	v.that(l.Transactions >= 0, at+"transactions", "%d is negative", l.Transactions)
	v.that(l.Offered >= 0, at+"offered", "%d is negative", l.Offered)
	v.that(l.Skipped >= 0 && l.Skipped <= l.Offered, at+"skipped", "%d is not within 0 and the %d that were offered", l.Skipped, l.Offered)
	v.counts(at+"errors", l.Errors)
	v.number(at+"seconds", l.Seconds)
	v.histogram(at+"response", l.Response)
	v.histogram(at+"service", l.Service)
	for _, name := range slices.Sorted(maps.Keys(l.Statements)) {
		v.histogram(at+"statements."+name, l.Statements[name])
	}
	v.numbers(at+"summary", l.Summary)
	v.numbers(at+"generator", l.Generator)
	v.that(len(l.Bins) <= maxBins, at+"bins", "%d are more than %d", len(l.Bins), maxBins)
	v.that(len(l.BinsMax) == 0 || len(l.BinsMax) == len(l.Bins), at+"bins_max", "%d for %d bins", len(l.BinsMax), len(l.Bins))
	for i, n := range l.Bins {
		if n < 0 {
			v.that(false, fmt.Sprintf("%sbins[%d]", at, i), "%d is negative", n)
		}
	}
	for i, x := range l.BinsMax {
		if x < 0 || math.IsNaN(x) || math.IsInf(x, 0) {
			v.number(fmt.Sprintf("%sbins_max[%d]", at, i), x)
		}
	}
}
