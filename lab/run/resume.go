package run

import (
	"fmt"
	"maps"
	"slices"

	"kurabe/lab/result"
	"kurabe/lab/study"
	"kurabe/lab/target"
)

// takeUp opens the file of a run that ended, and refuses a target that is not of the kind
// that it was begun on: ratios of two kinds of server would be one estimate.
func (r *runner) takeUp(about target.About) error {
	var err error
	if r.writer, r.file, err = result.Resume(r.Path); err != nil {
		return err
	}
	s := r.file.Study
	if s.Engine != about.Engine {
		return fmt.Errorf("%s holds a study of %s, and the target is %s", r.Path, s.Engine, about.Engine)
	}
	if s.Target != about.Kind {
		return fmt.Errorf("%s was begun on a target of the kind %s, and this one is of the kind %s: name the other with --target", r.Path, s.Target, about.Kind)
	}
	r.Study, r.seed = &s.Definition, s.Seed
	r.blocksHad = lastBlock(r.file)
	if Complete(r.file) {
		return fmt.Errorf("%s: %w", r.Path, ErrComplete)
	}
	return nil
}

// Complete says that a run ended by its plan and that every cell of its blocks counts. One
// that failed is worth another try: what it failed by may be over.
func Complete(f *result.File) bool {
	if n := len(f.Ends); n == 0 || f.Ends[n-1].Reason == reasonInterrupted || len(f.Trials) == 0 {
		return false
	}
	r := &runner{Options: Options{Study: &f.Study.Definition}, file: f, seed: f.Study.Seed, skip: f.Study.Unsupported}
	for block := 1; block <= lastBlock(f); block++ {
		counts, _ := r.had(block)
		for _, cell := range r.cells(block) {
			if !counts[cell] {
				return false
			}
		}
	}
	return true
}

// lastBlock is the last one that has a trial.
func lastBlock(f *result.File) int {
	last := 0
	for _, t := range f.Trials {
		last = max(last, t.Block)
	}
	return last
}

// had are the cells of a block that count already, and its last position.
func (r *runner) had(block int) (counts map[study.Cell]bool, position int) {
	counts = map[study.Cell]bool{}
	for _, t := range r.file.Trials {
		if t.Block == block {
			cell := study.Cell{Variant: t.Variant, Workload: t.Workload}
			counts[cell] = counts[cell] || t.Counts()
			position = max(position, t.Position)
		}
	}
	return counts, position
}

// foretell works out what the run is going to take.
func (r *runner) foretell(kind string) {
	r.plan = NewPlan(r.Study, kind, r.engine, r.skip)
	if r.Resume {
		r.plan = PlanToResume(r.file)
	}
	r.reset = r.plan.Reset.Time
}

// PlanToResume is the plan of a study that has begun.
func PlanToResume(f *result.File) Plan {
	s := &f.Study
	p := NewPlan(&s.Definition, s.Target, s.Engine, s.Unsupported)
	p.Resumed = true
	r := &runner{Options: Options{Study: &s.Definition}, file: f, seed: s.Seed, skip: s.Unsupported}
	for block := 1; block <= lastBlock(f); block++ {
		counts, _ := r.had(block)
		for _, cell := range r.cells(block) {
			if counts[cell] {
				p.Had++
			}
		}
	}
	return p
}

// keepSkips leaves out what the run left out when it began, and nothing else: a variant
// that comes or goes with a package that was installed meanwhile has not all blocks.
func (r *runner) keepSkips() error {
	began := r.file.Study.Unsupported
	for _, name := range slices.Sorted(maps.Keys(r.skip)) {
		if began[name] == "" {
			return fmt.Errorf("%s is a study with %s, which cannot be had here any more: %s", r.Path, name, r.skip[name])
		}
	}
	r.skip = maps.Clone(began)
	if r.skip == nil {
		r.skip = map[string]string{}
	}
	for name := range r.skip {
		delete(r.generators, name)
	}
	return nil
}
