package report

import (
	"slices"
	"strings"

	"kurabe/lab/study"
)

// published are the rows of the definition that answer a workload: those that name it,
// and those that name none.
func (v *view) published(workload string) []study.Published {
	var out []study.Published
	for _, p := range v.def.Published {
		if p.Workload == "" || p.Workload == workload {
			out = append(out, p)
		}
	}
	return out
}

// sources are where published rows come from, in the order in which they appear.
func sources(rows []study.Published) []string {
	var out []string
	for _, p := range rows {
		if s := reasonWords(p.Source); !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// publishedIn names a source by its number in the list of all.
func (v *view) publishedIn(source string) string {
	return "published " + v.sourceMark(source)
}

func (v *view) sourceMark(source string) string {
	return "[" + count(int64(slices.Index(sources(v.def.Published), source)+1)) + "]"
}

// publishedFor are the rows of one source and variant.
func publishedFor(rows []study.Published, source, variant string) []study.Published {
	var out []study.Published
	for _, p := range rows {
		if reasonWords(p.Source) == source && p.Variant == variant {
			out = append(out, p)
		}
	}
	return out
}

// ratioKey is the key of published values that is relative to the baseline.
const ratioKey = "ratio"

// publishedValue is a figure of a row; of a ratio of phases also one that follows from
// the figures of both phases.
func publishedValue(p study.Published, metric string) (float64, bool) {
	if x, ok := p.Values[metric]; ok {
		return x, true
	}
	base, suffix, _ := strings.Cut(metric, "@")
	over, under, isRatio := strings.Cut(suffix, "/")
	if !isRatio {
		return 0, false
	}
	a, okA := p.Values[base+"@"+over]
	b, okB := p.Values[base+"@"+under]
	if !okA || !okB || b == 0 {
		return 0, false
	}
	return a / b, true
}

// publishedRatio is the ratio that a row states, or the one that follows from the
// baseline's row of the same source.
func publishedRatio(p study.Published, rows []study.Published, metric, baseline string) (string, bool) {
	if x, ok := p.Values[ratioKey]; ok {
		return given(x), true
	}
	mine, ok := publishedValue(p, metric)
	if !ok || p.Variant == baseline {
		return "", false
	}
	for _, b := range rows {
		if b.Source != p.Source || b.Variant != baseline || b.Workload != p.Workload {
			continue
		}
		if base, ok := publishedValue(b, metric); ok && base != 0 {
			return num(mine / base), true
		}
	}
	return "", false
}

// publishedMetrics are the metrics, other than the statements', that the rows have, in
// the order of the definition, then by name.
func (v *view) publishedMetrics(workload string, rows []study.Published) []string {
	found := map[string]bool{}
	for _, p := range rows {
		for name := range p.Values {
			if name != ratioKey && !strings.HasPrefix(name, "stmt:") {
				found[name] = true
			}
		}
	}
	var out []string
	for _, name := range v.def.MetricsOf(workload) {
		if found[name] {
			out = append(out, name)
			delete(found, name)
		}
	}
	var rest []string
	for name := range found {
		rest = append(rest, name)
	}
	slices.Sort(rest)
	return append(out, rest...)
}
