package run

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"kurabe/lab/dial"
	"kurabe/lab/load"
	"kurabe/lab/result"
	"kurabe/lab/stat"
	"kurabe/lab/study"
	"kurabe/lab/target"
)

// Level is the confidence of every interval.
const Level = 0.95

// Options are what a run needs.
type Options struct {
	Study  *study.Study // as asked for, with its twin
	Target target.Target
	Path   string // of the result file
	Resume bool   // go on with that file, and the study in it
	// Command is written to the file, to be repeated by others: no secrets in it.
	Command []string
	Lab     map[string]string // version, binary_sha256, go
	// Folder is where the canary writes.
	Folder string
	// Say is told what happens. It must not block.
	Say func(Progress)
}

// Progress is where a run is.
type Progress struct {
	Stage  string // "check", "plan", "prepare", "trial", "block", "clean"
	Block  int
	Blocks int // at the most
	Trial  int // of all, from 1
	Trials int
	Cell   study.Cell
	Status string        // of a trial that has ended: result.StatusOK, ...
	Reason string        // of one that is not ok
	Left   time.Duration // as the trials so far took; before the first, as foretold
	File   *result.File  // after a block: what is known by then
	Plan   Plan          // of the stage "plan": what is about to be done
}

// runner is a run under way.
type runner struct {
	Options
	engine     string
	file       *result.File // what is in the file so far
	writer     *result.Writer
	generators map[string]load.Generator // by workload
	workloads  map[string]study.Workload
	variants   map[string]study.Variant
	skip       map[string]string // variants and workloads that cannot be had
	shapes     map[string]string // of the tables that changes are made to, as the first trial found them
	seed       uint64
	done, all  int // trials
	began      time.Time
	measured   int // trials since began
	plan       Plan
	reset      time.Duration // as foretold, then as the first one was
	resetSeen  bool
	blocksHad  int // the last block that the resumed file has a trial of
}

// Run measures. What it created on the target is gone when it returns, whatever
// happened; what was measured is in the file.
func Run(ctx context.Context, o Options) (failure error) {
	r := &runner{Options: o, generators: map[string]load.Generator{}, workloads: map[string]study.Workload{}, variants: map[string]study.Variant{}}
	if r.Say == nil {
		r.Say = func(Progress) {}
	}
	defer func() {
		r.Say(Progress{Stage: "clean"})
		// Not ctx: it may have ended, and is why we are here.
		failure = errors.Join(failure, r.Target.Close(context.WithoutCancel(ctx)))
		if r.writer != nil {
			failure = errors.Join(failure, r.writer.Close())
		}
	}()
	r.Say(Progress{Stage: "check"})
	if err := r.open(ctx); err != nil {
		return err
	}
	r.Say(Progress{Stage: "plan", Plan: r.plan})
	r.Say(Progress{Stage: "prepare"})
	if err := r.Target.Prepare(ctx, r.Study, r.fill); err != nil {
		return fmt.Errorf("prepare the target: %w", err)
	}
	reason, err := r.blocks(ctx)
	if ctx.Err() != nil {
		if errors.Is(err, context.Cause(ctx)) {
			err = nil // what ErrInterrupted says better
		}
		reason, err = reasonInterrupted, errors.Join(ErrInterrupted, err)
	}
	if reason != "" {
		err = errors.Join(err, r.append(result.End{At: time.Now(), Reason: reason}))
	}
	return err
}

// ErrComplete says that a file to be resumed has all that its plan wants.
var ErrComplete = errors.New("the plan of this study is fulfilled, so there is nothing to go on with: kurabe lab report shows it, and a new run measures more")

// ErrInterrupted says that a run ended before its plan because its context did.
var ErrInterrupted = errors.New("interrupted; what was measured is kept, and --resume goes on")

// open checks everything that can be wrong, and only then makes the file.
func (r *runner) open(ctx context.Context) error {
	about, err := r.Target.About(ctx)
	if err != nil {
		return err
	}
	r.engine = about.Engine
	if r.Resume {
		if err := r.takeUp(about); err != nil {
			return err
		}
	} else if r.Study, err = study.ForEngine(r.Study, r.engine); err != nil {
		return err
	}
	if err := r.load(ctx); err != nil {
		return err
	}
	r.foretell(about.Kind)
	env := result.Env{Host: host(r.Folder), Engine: about.Map(), Lab: r.Lab}
	if r.Resume {
		return r.append(env)
	}
	if r.seed = r.Study.Plan.Seed; r.seed == 0 {
		r.seed = rand.Uint64()
	}
	now := time.Now().UTC()
	s := result.Study{
		Format: result.Format, ID: fmt.Sprintf("%s-%s-%08x", r.Study.Name, now.Format("20060102t150405"), uint32(rand.Uint64())), Created: now,
		Definition: *r.Study, Seed: r.seed, Engine: r.engine, Target: about.Kind, Command: r.Command, Unsupported: r.skip,
	}
	if r.writer, err = result.Create(r.Path, s); err != nil {
		return err
	}
	r.file = &result.File{Study: s, Settings: map[string]map[string]string{}}
	return r.append(env)
}

// load makes the generators and learns what the target cannot have.
func (r *runner) load(ctx context.Context) error {
	if err := load.CheckAll(r.Study.Workloads); err != nil {
		return err // the study's mistake, which no other target would take
	}
	var err error
	if r.skip, err = r.Target.Check(ctx, r.Study); err != nil {
		return err
	}
	if r.skip == nil {
		r.skip = map[string]string{}
	}
	for _, w := range r.Study.Workloads {
		r.workloads[w.Name] = w
		g, err := load.New(w)
		if err == nil {
			err = g.Check(r.engine)
		}
		if err != nil {
			r.skip[w.Name] = err.Error()
			continue
		}
		r.generators[w.Name] = g
	}
	for _, v := range r.Study.Variants {
		r.variants[v.Name] = v
	}
	if r.Resume {
		if err := r.keepSkips(); err != nil {
			return err
		}
	}
	if why := r.skip[r.Study.Baseline]; why != "" {
		return fmt.Errorf("the baseline %s cannot be had here: %s", r.Study.Baseline, why)
	}
	r.all = len(r.cells(1)) * r.Study.Plan.BlocksMax
	if len(r.cells(1)) < 2 {
		return fmt.Errorf("nothing is left to compare: %v", r.skip)
	}
	return nil
}

// cells are those of a block, in its order, that can be had.
func (r *runner) cells(block int) []study.Cell {
	return slices.DeleteFunc(study.Order(r.Study, r.seed, block), func(c study.Cell) bool {
		return r.skip[c.Variant] != "" || r.skip[c.Workload] != ""
	})
}

// fill makes the data of all workloads in one database.
func (r *runner) fill(ctx context.Context, s dial.Server) error {
	for _, w := range r.Study.Workloads {
		g := r.generators[w.Name]
		if g == nil {
			continue
		}
		if err := g.Prepare(ctx, s); err != nil {
			return fmt.Errorf("make the data of %s: %w", w.Name, err)
		}
	}
	return nil
}

// Reasons of an end, as in result.End.
const (
	reasonPrecise     = "precise"
	reasonBlocks      = "blocks"
	reasonInterrupted = "interrupted"
)

// blocks measures until the plan is fulfilled and says why it ended.
func (r *runner) blocks(ctx context.Context) (reason string, err error) {
	r.began = time.Now()
	for block := 1; block <= r.Study.Plan.BlocksMax; block++ {
		if err := r.block(ctx, block); err != nil {
			return "", err
		}
		r.Say(r.progress(Progress{Stage: "block", Block: block, File: r.file}))
		precise, err := r.precise(block)
		if err != nil {
			return "", err
		}
		if precise {
			return reasonPrecise, nil
		}
	}
	return reasonBlocks, nil
}

// precise says whether every primary interval is narrow enough.
func (r *runner) precise(block int) (bool, error) {
	want := r.Study.Plan.TargetHalfwidth
	// What the file has beyond this block was measured because this block was not precise.
	if want == 0 || block < max(r.Study.Plan.BlocksMin, r.blocksHad) {
		return false, nil
	}
	all, err := result.Estimates(r.file, Level)
	if err != nil {
		return false, err
	}
	for _, e := range all {
		if e.Primary && !(e.Ratio.Pairs > 0 && halfwidth(e.Ratio) <= want) {
			return false, nil
		}
	}
	return true, nil
}

// halfwidth of an interval of ratios, as a share of the estimate.
func halfwidth(r stat.Ratio) float64 {
	return (r.Interval.High - r.Interval.Low) / 2 / r.Estimate
}

func (r *runner) progress(p Progress) Progress {
	p.Blocks, p.Trials, p.Trial = r.Study.Plan.BlocksMax, r.all, r.done
	rest := r.all - r.done
	if p.Stage == "trial" && p.Status == "" {
		rest++ // the one under way is done when it has ended
	}
	each := r.reset + r.plan.loaded()
	if r.measured > 0 {
		each = time.Since(r.began) / time.Duration(r.measured)
	}
	p.Left = each * time.Duration(rest)
	return p
}

// append adds a record to the file and to what is known of it.
func (r *runner) append(record any) error {
	if err := r.writer.Append(record); err != nil {
		return fmt.Errorf("write %s: %w", r.Path, err)
	}
	switch v := record.(type) {
	case result.Env:
		r.file.Env = append(r.file.Env, v)
	case result.Settings:
		r.file.Settings[v.Variant] = v.Values
	case result.Trial:
		r.file.Trials = append(r.file.Trials, v)
	case result.Event:
		r.file.Events = append(r.file.Events, v)
	case result.End:
		r.file.Ends = append(r.file.Ends, v)
	}
	return nil
}
