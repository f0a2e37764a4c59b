package study

import (
	"fmt"
	"slices"
	"strings"
)

// Statements are those for one engine: what is for all, then its own.
func Statements(by map[string][]string, engine string) []string {
	return slices.Concat(by[""], by[engine])
}

// ForEngine is the study as it is asked of one engine: without the variants, workloads,
// statements and published rows of others.
func ForEngine(s *Study, engine string) (*Study, error) {
	if !slices.Contains(s.Engines, engine) {
		return nil, fmt.Errorf("the study %s cannot be asked of %s: it is for %s", s.Name, engine, strings.Join(s.Engines, ", "))
	}
	out := clone(s)
	out.Engines = []string{engine}
	out.Variants, out.Workloads = variantsFor(s.Variants, engine), workloadsFor(s.Workloads, engine)
	out.Quick, out.AsPublished = s.Quick.forEngine(s, engine), s.AsPublished.forEngine(s, engine)
	switch {
	case !out.hasVariant(out.Baseline):
		return nil, fmt.Errorf("the study %s cannot be asked of %s: its baseline, %s, is for other engines", s.Name, engine, s.Baseline)
	case len(out.Workloads) == 0:
		return nil, fmt.Errorf("the study %s cannot be asked of %s: no workload is for it", s.Name, engine)
	}
	variants, workloads := out.publishable()
	out.Published = slices.DeleteFunc(out.Published, func(p Published) bool {
		return !variants[p.Variant] || p.Workload != "" && !workloads[p.Workload]
	})
	return out, nil
}

// publishable are the names that a published row may have: of the study as it is or as it
// was published.
func (s *Study) publishable() (variants, workloads map[string]bool) {
	variants, workloads = map[string]bool{}, map[string]bool{}
	for _, a := range []*Adjustment{{PutVariants: s.Variants, PutWorkloads: s.Workloads}, s.AsPublished} {
		if a == nil {
			continue
		}
		for _, v := range a.PutVariants {
			variants[v.Name] = true
		}
		for _, w := range a.PutWorkloads {
			workloads[w.Name] = true
		}
	}
	return variants, workloads
}

func variantsFor(list []Variant, engine string) []Variant {
	var out []Variant
	for _, v := range list {
		if covers(v.Engines, engine) {
			v.Engines, v.SQL, v.Change, v.Changed = nil, only(v.SQL, engine), only(v.Change, engine), only(v.Changed, engine)
			out = append(out, v)
		}
	}
	return out
}

func workloadsFor(list []Workload, engine string) []Workload {
	var out []Workload
	for _, w := range list {
		if covers(w.Engines, engine) {
			w.Engines, w.Setup = nil, only(w.Setup, engine)
			out = append(out, w)
		}
	}
	return out
}

// only are the statements for all and for one engine; nil without any.
func only(by map[string][]string, engine string) map[string][]string {
	var out map[string][]string
	for _, key := range []string{"", engine} {
		if list, ok := by[key]; ok {
			if out == nil {
				out = map[string][]string{}
			}
			out[key] = list
		}
	}
	return out
}

// forEngine is a section without what other engines have: a name in it that the engine
// has not would otherwise be a slip of the pen.
func (a *Adjustment) forEngine(s *Study, engine string) *Adjustment {
	if a == nil {
		return nil
	}
	out := *a
	out.PutVariants, out.PutWorkloads = variantsFor(a.PutVariants, engine), workloadsFor(a.PutWorkloads, engine)
	out.Variants, out.Workloads = slices.Clone(a.Variants), slices.Clone(a.Workloads)
	for _, v := range s.Variants {
		if !covers(v.Engines, engine) {
			out.Variants = without(out.Variants, v.Name)
		}
	}
	for _, w := range s.Workloads {
		if !covers(w.Engines, engine) {
			out.Workloads = without(out.Workloads, w.Name)
		}
	}
	return &out
}
