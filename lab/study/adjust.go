package study

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Adjustment is what --quick or --as-published makes of a study.
type Adjustment struct {
	// Scale multiplies the data of the study's own workloads; 0 leaves it.
	Scale float64 `yaml:"scale,omitempty"`
	// PutVariants and PutWorkloads are added, or take the place of those with their name.
	PutVariants  []Variant  `yaml:"put_variants,omitempty"`
	PutWorkloads []Workload `yaml:"put_workloads,omitempty"`
	// Variants and Workloads are the names of those that stay; empty keeps all.
	Variants  []string `yaml:"variants,omitempty"`
	Workloads []string `yaml:"workloads,omitempty"`
	// Margin is that of the verdicts; 0 leaves those of the study and its workloads.
	Margin float64    `yaml:"margin,omitempty"`
	Plan   PlanChange `yaml:"plan,omitempty"`
}

// PlanChange has the keys of a Plan; those that are 0 leave the plan's.
type PlanChange struct {
	BlocksMin       int      `yaml:"blocks_min,omitempty"`
	BlocksMax       int      `yaml:"blocks_max,omitempty"`
	TargetHalfwidth float64  `yaml:"target_halfwidth,omitempty"`
	Warm            Duration `yaml:"warm,omitempty"`
	WarmMax         Duration `yaml:"warm_max,omitempty"`
	Measure         Duration `yaml:"measure,omitempty"`
	DuringMin       Duration `yaml:"during_min,omitempty"`
	After           Duration `yaml:"after,omitempty"`
}

// FactorMin and FactorMax bound a factor of data.
const (
	FactorMin = 0.0001
	FactorMax = 10_000.0
)

// PublishedRatio is the name, among the values of a published row, of the ratio to the
// row of the baseline.
const PublishedRatio = "ratio"

// QuickTotal is what a quick study takes at the most if six blocks are to be had, with a
// reset of QuickReset: "under three minutes" less the preparing and the report.
const (
	QuickTotal = 150 * time.Second
	QuickReset = 1200 * time.Millisecond
)

// clone is a copy whose lists can be changed. What is in an item, maps and lists of
// names, is shared and never written to.
func clone(s *Study) *Study {
	c := *s
	c.Engines, c.Metrics, c.Published = slices.Clone(s.Engines), slices.Clone(s.Metrics), slices.Clone(s.Published)
	c.Variants, c.Workloads = slices.Clone(s.Variants), slices.Clone(s.Workloads)
	return &c
}

// apply gives the adjusted study, which has no sections to adjust it again, and the
// published rows of what it still has.
func (a *Adjustment) apply(s *Study) *Study {
	out := clone(s)
	out.Quick, out.AsPublished = nil, nil
	if a.Scale > 0 {
		out.scale(a.Scale)
	}
	for _, v := range a.PutVariants {
		out.Variants = put(out.Variants, v, func(x Variant) bool { return x.Name == v.Name })
	}
	for _, w := range a.PutWorkloads {
		out.Workloads = put(out.Workloads, w, func(x Workload) bool { return x.Name == w.Name })
	}
	keep(&out.Variants, a.Variants, func(v Variant) []string { return []string{v.Name, v.TwinOf} })
	keep(&out.Workloads, a.Workloads, func(w Workload) []string { return []string{w.Name} })
	out.Published = slices.DeleteFunc(out.Published, func(p Published) bool {
		return !out.hasVariant(p.Variant) || p.Workload != "" && !out.hasWorkload(p.Workload)
	})
	a.Plan.apply(&out.Plan)
	if a.Margin != 0 {
		out.setMargin(a.Margin)
	}
	return out
}

// setMargin changes the margin of the study and of each workload with one of its own.
func (s *Study) setMargin(margin float64) {
	s.Primary.Margin = margin
	for i := range s.Workloads {
		if own := s.Workloads[i].Primary; own != nil {
			s.Workloads[i].Primary = &Primary{Metric: own.Metric, Margin: margin}
		}
	}
}

func (s *Study) hasVariant(name string) bool {
	return slices.ContainsFunc(s.Variants, func(v Variant) bool { return v.Name == name })
}

func (s *Study) hasWorkload(name string) bool {
	return slices.ContainsFunc(s.Workloads, func(w Workload) bool { return w.Name == name })
}

// put adds an item or replaces the one that matches.
func put[T any](list []T, item T, same func(T) bool) []T {
	if i := slices.IndexFunc(list, same); i >= 0 {
		list[i] = item
		return list
	}
	return append(list, item)
}

// keep drops the items of which no name is wanted. When nothing would be left, because
// what is wanted is of another engine, all stay.
func keep[T any](list *[]T, wanted []string, names func(T) []string) {
	left := slices.DeleteFunc(slices.Clone(*list), func(item T) bool {
		return !slices.ContainsFunc(names(item), func(n string) bool { return slices.Contains(wanted, n) })
	})
	if len(left) > 0 {
		*list = left
	}
}

func (c PlanChange) apply(p *Plan) {
	set(&p.BlocksMin, c.BlocksMin)
	set(&p.BlocksMax, c.BlocksMax)
	set(&p.TargetHalfwidth, c.TargetHalfwidth)
	set(&p.Warm, c.Warm)
	set(&p.WarmMax, c.WarmMax)
	set(&p.Measure, c.Measure)
	set(&p.DuringMin, c.DuringMin)
	set(&p.After, c.After)
}

func set[T comparable](to *T, value T) {
	var zero T
	if value != zero {
		*to = value
	}
}

// scale multiplies the data. A size that is not given is the kit's own and stays.
func (s *Study) scale(factor float64) {
	for i := range s.Workloads {
		w := &s.Workloads[i]
		w.Scale, w.Rows = times(w.Scale, factor, ScaleMax), times(w.Rows, factor, RowsMax)
	}
}

func times(n int, factor float64, most int) int {
	if n == 0 {
		return 0
	}
	return int(min(max(math.Round(float64(n)*factor), 1), float64(most)))
}

// Quick is the study for those who want a first answer: what its section quick says,
// short phases, and six blocks when they fit in QuickTotal, else three, which give a
// direction and no verdict. It counts the twin. Ask ForEngine first: fewer cells may
// then allow six blocks.
func Quick(s *Study) *Study {
	base := clone(s)
	p := &base.Plan
	p.TargetHalfwidth = 0
	p.Warm, p.WarmMax = min(p.Warm, Duration(time.Second)), min(p.WarmMax, Duration(2*time.Second))
	p.Measure = min(p.Measure, Duration(3*time.Second))
	p.DuringMin, p.After = min(p.DuringMin, Duration(time.Second)), min(p.After, Duration(time.Second))
	section := s.Quick
	if section == nil {
		section = &Adjustment{}
	}
	q := section.apply(base)
	if section.Plan.BlocksMin > 0 && section.Plan.BlocksMax > 0 {
		return q
	}
	q.Plan.BlocksMin, q.Plan.BlocksMax = VerdictBlocks, VerdictBlocks
	for _, engine := range q.Engines {
		one, err := ForEngine(q, engine)
		if err == nil && Price(WithTwin(one), QuickReset, nil).TotalMin > QuickTotal {
			q.Plan.BlocksMin, q.Plan.BlocksMax = DirectionBlocks, DirectionBlocks
		}
	}
	return q
}

// AsPublished is the study with the sizes and durations of the measurement that it
// answers to.
func AsPublished(s *Study) (*Study, error) {
	if s.AsPublished == nil {
		return nil, fmt.Errorf("the study %s has no section as_published", s.Name)
	}
	return s.AsPublished.apply(s), nil
}

// Scaled is the study with that many times the data.
func Scaled(s *Study, factor float64) (*Study, error) {
	if !(factor >= FactorMin && factor <= FactorMax) {
		return nil, fmt.Errorf("scale %v is outside of %v to %v", factor, FactorMin, FactorMax)
	}
	out := clone(s)
	out.scale(factor)
	return out, nil
}

// WithBlocks is the study with exactly so many blocks.
func WithBlocks(s *Study, blocks int) (*Study, error) {
	if blocks < 1 || blocks > BlocksMax {
		return nil, fmt.Errorf("%d blocks are outside of 1 to %d", blocks, BlocksMax)
	}
	out := clone(s)
	out.Plan.BlocksMin, out.Plan.BlocksMax, out.Plan.TargetHalfwidth = blocks, blocks, 0
	return out, nil
}

// WithTwin is the study with the twin of its baseline, behind it. One that has it stays
// as it is.
func WithTwin(s *Study) *Study {
	out := clone(s)
	i := slices.IndexFunc(out.Variants, func(v Variant) bool { return v.Name == s.Baseline })
	if i < 0 || slices.ContainsFunc(out.Variants, func(v Variant) bool { return v.TwinOf == s.Baseline }) {
		return out
	}
	twin := out.Variants[i]
	twin.Name, twin.TwinOf = Twin(s.Baseline), s.Baseline
	if twin.Title != "" {
		twin.Title += ", the same again"
	}
	out.Variants = slices.Insert(out.Variants, i+1, twin)
	return out
}

// Without is the study without some variants and workloads, by name: those that a
// target cannot have, when the time of the others is asked for.
func Without(s *Study, names ...string) *Study {
	out := clone(s)
	out.Variants = slices.DeleteFunc(out.Variants, func(v Variant) bool { return slices.Contains(names, v.Name) })
	out.Workloads = slices.DeleteFunc(out.Workloads, func(w Workload) bool { return slices.Contains(names, w.Name) })
	return out
}
