package study

import (
	"fmt"
	"maps"
	"slices"
)

// adjustment checks a section that changes the study.
func (c *checker) adjustment(path string, a *Adjustment) {
	if a == nil {
		return
	}
	c.variants(path+".put_variants", a.PutVariants)
	c.workloads(path+".put_workloads", a.PutWorkloads)
	if a.Scale != 0 && !(a.Scale >= FactorMin && a.Scale <= FactorMax) {
		c.refuse(path+".scale", "%v is outside of %v to %v", a.Scale, FactorMin, FactorMax)
	}
	if a.Margin != 0 && !(a.Margin > 0 && a.Margin < 1) {
		c.refuse(path+".margin", "%v is outside of 0 to 1; it is a share, 0.1 for ten percent", a.Margin)
	}
	adjusted := a.apply(c.study)
	known := map[string]bool{}
	for _, v := range append(slices.Clone(c.study.Variants), a.PutVariants...) {
		known[v.Name] = true
	}
	for i, name := range a.Variants {
		if !known[name] {
			c.refuse(fmt.Sprintf("%s.variants[%d]", path, i), "%q is no variant of the study", brief(name))
		}
	}
	if len(a.Variants) > 0 && !slices.Contains(a.Variants, c.study.Baseline) {
		c.refuse(path+".variants", "leaves the baseline, %q, out; add it", brief(c.study.Baseline))
	}
	known = map[string]bool{}
	for _, w := range append(slices.Clone(c.study.Workloads), a.PutWorkloads...) {
		known[w.Name] = true
	}
	for i, name := range a.Workloads {
		if !known[name] {
			c.refuse(fmt.Sprintf("%s.workloads[%d]", path, i), "%q is no workload of the study", brief(name))
		}
	}
	c.plan(path+".plan", adjusted.Plan)
	if c.found > 0 {
		return // the study it is made from is wrong already
	}
	whole := checker{Options: c.Options, study: adjusted, refuse: func(at, format string, args ...any) {
		c.refuse(path, "makes a study that is wrong: %s: %s", at, fmt.Sprintf(format, args...))
	}}
	whole.check()
}

// published checks that each row can be shown beside a measured one, of the study as it
// is or as it was published.
func (c *checker) published() {
	variants, workloads := c.study.publishable()
	for i, p := range c.study.Published {
		at := fmt.Sprintf("published[%d]", i)
		if !variants[p.Variant] {
			c.refuse(at+".variant", "%q is no variant of the study", brief(p.Variant))
		}
		if p.Workload != "" && !workloads[p.Workload] {
			c.refuse(at+".workload", "%q is no workload of the study", brief(p.Workload))
		}
		if p.Source == "" || p.Label == "" {
			c.refuse(at, "needs a source and a label: where it was published, and what it was called there")
		}
		for _, name := range slices.Sorted(maps.Keys(p.Values)) {
			if name != PublishedRatio {
				c.metric(join(at+".values", name), name)
			}
		}
	}
}
