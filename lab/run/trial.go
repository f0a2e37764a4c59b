package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kurabe/lab/load"
	"kurabe/lab/probe"
	"kurabe/lab/result"
	"kurabe/lab/stat"
	"kurabe/lab/study"
	"kurabe/lab/target"
)

const (
	// settledPoints is how many seconds without a shift end the warm-up.
	settledPoints = 10
	// changeMax bounds a change under load.
	changeMax = 2 * time.Hour
	// calmMax is how long the machine may take to become calm before a trial, and as fast
	// as it was after it: less than the shortest trial, which is the price of one that does
	// not count.
	calmMax = 3 * time.Second
	// canaryMax bounds the machine's own measure before and after a trial, the waiting
	// included.
	canaryMax = calmMax + 5*time.Second
)

// trial is one cell of one block while it is measured.
type trial struct {
	*runner
	last     bool // no other try follows
	record   result.Trial
	settings map[string]string
	events   []result.Event
	probe    *probe.Probe
	change   *change   // nil without one
	parts    []part    // what the probes saw, by phase
	loaded   time.Time // when the first phase began
}

// part is what was seen of one phase.
type part struct {
	phase  string
	probes map[string]float64
	waits  map[string]int
}

// run measures. An error is the trial's, whose record then says so, but for that of a
// ctx that has ended.
func (t *trial) run(ctx context.Context) (failure error) {
	t.record.Start = time.Now().UTC()
	variant, workload := t.variants[t.record.Variant], t.workloads[t.record.Workload]
	lease, err := t.Target.Lease(ctx, variant)
	if err != nil {
		return fmt.Errorf("a server for %s: %w", variant.Name, err)
	}
	defer func() {
		failure = errors.Join(failure, lease.Release(context.WithoutCancel(ctx)))
	}()
	t.settings = lease.Settings
	ready := time.Now()
	t.correct(ready.Sub(t.record.Start))
	usual := t.usual()
	before, err := t.canary(ctx, func(c probe.Canary) bool { return c.Calm() && c.AsFast(usual) })
	if err != nil {
		return err
	}
	outcome, err := t.measure(ctx, lease, variant, workload)
	if err != nil {
		return err
	}
	after, err := t.canary(ctx, before.AsFast)
	if err != nil {
		return err
	}
	t.write(outcome, ready)
	t.judge(before, after, outcome.Unsettled)
	return nil
}

// correct has the time left follow the first real reset: on some targets a reset takes
// longer than all the rest, and nobody could foretell it.
func (t *trial) correct(took time.Duration) {
	if t.resetSeen {
		return
	}
	t.resetSeen, t.reset = true, took
	t.Say(t.progress(Progress{Stage: "trial", Block: t.record.Block, Cell: study.Cell{Variant: t.record.Variant, Workload: t.record.Workload}}))
}

// usual is the middle of what the run's canaries said so far of the processor. A clock that
// is lower for a moment, as after the work of a reset, is waited for before a trial: seen
// only there it would pass for a processor that became faster during it.
func (t *trial) usual() probe.Canary {
	var ms []float64
	for n := range t.file.Trials {
		if both, ok := t.file.Trials[n].Canary[probe.CanaryCPU]; ok {
			ms = append(ms, both[:]...)
		}
	}
	if len(ms) == 0 {
		return probe.Canary{}
	}
	return probe.Canary{Ms: map[string]float64{probe.CanaryCPU: stat.Median(ms)}}
}

func (t *trial) canary(ctx context.Context, ok func(probe.Canary) bool) (probe.Canary, error) {
	ctx, cancel := context.WithTimeout(ctx, canaryMax)
	defer cancel()
	return probe.SingUntil(ctx, t.Folder, calmMax, ok)
}

// measure has the load run through its phases, with the probes cut at their borders.
func (t *trial) measure(ctx context.Context, lease *target.Lease, v study.Variant, w study.Workload) (*load.Outcome, error) {
	var err error
	if t.probe, err = probe.Start(ctx, probe.Options{Server: lease.Direct, PIDs: lease.PIDs}); err != nil {
		return nil, fmt.Errorf("watch the server: %w", err)
	}
	defer t.probe.Close()
	plan := t.Study.Plan
	o := load.Options{
		Warm: time.Duration(plan.Warm), WarmMax: time.Duration(plan.WarmMax), Measure: time.Duration(plan.Measure), After: time.Duration(plan.After),
		Seed: t.record.Seed, Enter: t.enter, ChangeMax: changeMax, DuringMin: time.Duration(plan.DuringMin),
	}
	// In a shorter warm-up no end can be found: it lasts as long as the study says.
	if o.WarmMax >= settledPoints*time.Second {
		o.Settled = func(perSecond []float64) bool { _, ok := stat.Settled(perSecond, settledPoints); return ok }
	}
	if t.change = newChange(t.engine, v, w, lease.Direct); t.change != nil {
		defer t.change.close()
		if err := t.change.open(ctx); err != nil {
			return nil, err
		}
		if err := t.same(t.change); err != nil {
			return nil, err
		}
		o.Change = t.change.make
	}
	outcome, err := t.generators[w.Name].Run(ctx, lease.Server, o)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", w.Name, err)
	}
	if t.change != nil {
		return outcome, t.change.verify(ctx)
	}
	return outcome, nil
}

// enter is told of each phase as it begins, and of the end by "".
func (t *trial) enter(phase string) error {
	if t.loaded.IsZero() {
		t.loaded = time.Now()
	}
	probes, waits, err := t.probe.Cut()
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	if n := len(t.parts); n > 0 {
		t.parts[n-1].probes, t.parts[n-1].waits = probes, waits
	}
	if phase != "" {
		t.parts = append(t.parts, part{phase: phase})
	}
	return nil
}

// write puts together what clients and probes saw.
func (t *trial) write(o *load.Outcome, ready time.Time) {
	start := t.record.Start
	reset := float64(ready.Sub(start).Microseconds()) / 1000
	t.record.Phases = append(t.record.Phases, result.Phase{Name: result.PhaseReset, Ms: reset})
	offset := float64(t.loaded.Sub(start).Microseconds()) / 1000
	for n := range o.Phases {
		p := &o.Phases[n]
		p.StartMs += offset
		for _, seen := range t.parts {
			if seen.phase == p.Name {
				p.Probes, p.Waits = seen.probes, seen.waits
			}
		}
		t.record.Phases = append(t.record.Phases, *p)
	}
	for _, e := range t.probe.Events() {
		t.event(e.At, e.Kind, e.Text)
	}
	if t.change == nil {
		return
	}
	var begin time.Time
	for _, e := range t.change.events {
		t.event(e.at, e.kind, e.text)
		switch e.kind {
		case result.EventChangeBegin:
			begin = e.at
		case result.EventChangeEnd:
			t.record.ChangeMs = float64(e.at.Sub(begin).Nanoseconds()) / 1e6
		}
	}
}

func (t *trial) event(at time.Time, kind, text string) {
	ms := float64(at.Sub(t.record.Start).Microseconds()) / 1000
	t.events = append(t.events, result.Event{
		Block: t.record.Block, Position: t.record.Position, Variant: t.record.Variant, Workload: t.record.Workload, AtMs: max(0, ms), Kind: kind, Text: text,
	})
}

// judge gives the status. It looks at the machine and the warm-up, and at no figure of
// the load: whoever leaves out trials by their results finds what he wants.
func (t *trial) judge(before, after probe.Canary, unsettled bool) {
	t.record.Status = result.StatusOK
	t.record.Canary = map[string][2]float64{}
	for kind, ms := range before.Ms {
		t.record.Canary[kind] = [2]float64{ms, after.Ms[kind]}
	}
	if unsettled {
		t.record.Status, t.record.Reason = result.StatusUnsettled, "the warm-up found no end"
	}
	disturbed, why := probe.Disturbed(before, after)
	switch {
	case disturbed && t.last:
		t.record.Status, t.record.Reason = result.StatusUnsettled, "again: "+why
	case disturbed:
		t.record.Status, t.record.Reason = result.StatusRepeated, why
	}
}

// host describes the machine that the lab runs on.
func host(folder string) map[string]string { return probe.Host(folder) }
