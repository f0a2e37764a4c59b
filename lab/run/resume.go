package run

import (
	"fmt"
	"maps"
	"slices"

	"kurabe/lab/result"
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
	return nil
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
