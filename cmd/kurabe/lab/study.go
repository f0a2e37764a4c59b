package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"kurabe/lab/result"
	"kurabe/lab/run"
	"kurabe/lab/study"
)

// declared are the flags that say what a study is, and with what they are said of one
// that has begun.
var declared = map[string]string{
	"quick": "", "as-published": "", "scale": "", "seed": "", "engine": "", "variants": "", "out": "",
	// As many more as it takes until the answer pleases is no plan, and no interval of ours
	// allows for it.
	"blocks": "; how many blocks there are was declared before the first of them was seen",
}

// resumable refuses flags that a study which has begun would ignore.
func (f *runFlags) resumable() error {
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		if f.target.set.Changed(name) {
			return fmt.Errorf("--resume goes on with the study as %s has it, so --%s cannot be given%s: leave it out, or run the study anew without --resume", f.resume, name, declared[name])
		}
	}
	return nil
}

// study gives the study as the flags change it, and the engine to ask for.
func (f *runFlags) study(ctx context.Context, p place, name string) (*study.Study, string, error) {
	if f.resume != "" {
		if err := f.resumable(); err != nil {
			return nil, "", err
		}
		file, err := result.Read(f.resume)
		if err != nil {
			return nil, "", err
		}
		if run.Complete(file) {
			return nil, "", fmt.Errorf("%s: %w", f.resume, run.ErrComplete)
		}
		return &file.Study.Definition, file.Study.Engine, nil
	}
	if f.quick && f.published {
		return nil, "", errors.New("--quick and --as-published exclude each other")
	}
	s, err := loadStudy(name)
	if err != nil {
		return nil, "", err
	}
	engine := f.engine
	if engine == "" {
		if engine, err = f.target.engine(ctx, p, s); err != nil {
			return nil, "", err
		}
	}
	if s, err = study.ForEngine(s, engine); err != nil {
		return nil, "", err
	}
	if s, err = f.adjusted(s); err != nil {
		return nil, "", err
	}
	s = study.WithTwin(s)
	s.Plan.Seed = f.seed
	return s, engine, nil
}

// adjusted is the study with the sizes that were asked for.
func (f *runFlags) adjusted(s *study.Study) (_ *study.Study, err error) {
	if f.quick {
		s = study.Quick(s)
	}
	if f.published {
		if s, err = study.AsPublished(s); err != nil {
			return nil, err
		}
	}
	if f.scale != 1 {
		if s, err = study.Scaled(s, f.scale); err != nil {
			return nil, err
		}
	}
	if f.target.set.Changed("blocks") {
		if s, err = study.WithBlocks(s, f.blocks); err != nil {
			return nil, err
		}
	}
	return f.only(s)
}

// only leaves out the variants that were not named.
func (f *runFlags) only(s *study.Study) (*study.Study, error) {
	if len(f.variants) == 0 {
		return s, nil
	}
	all := variantNames(s)
	for _, name := range f.variants {
		if !slices.Contains(all, name) {
			return nil, fmt.Errorf("--variants %s: the study %s has %s", name, s.Name, strings.Join(all, ", "))
		}
	}
	rest := slices.DeleteFunc(all, func(name string) bool { return name == s.Baseline || slices.Contains(f.variants, name) })
	return study.Without(s, rest...), nil
}
