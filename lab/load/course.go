package load

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"kurabe/lab/result"
)

// course leads a run of the own generator through its phases.
type course struct {
	*ownRun
	Options
	labels []string
	marked bool      // the first phase
	cpu    []float64 // s of this process, at each boundary
	out    Outcome
}

func (c *course) run(ctx context.Context) (*Outcome, error) {
	first := result.PhaseMeasure
	switch {
	case c.Warm > 0:
		first = result.PhaseWarm
	case c.Change != nil:
		first = result.PhaseIdle
	}
	if c.series != nil && c.Warm == 0 {
		c.series.measuring.Store(true)
	}
	c.cpu = append(c.cpu, processSeconds())
	c.begin(first)
	err := c.phases(ctx)
	patient := err == nil
	if patient {
		err = c.step("")
	} else {
		c.endAt(0)
	}
	c.finish(ctx, patient)
	if err == nil {
		err = c.broken(ctx)
	}
	if err != nil {
		return nil, err
	}
	if err := c.collect(); err != nil {
		return nil, err
	}
	return &c.out, nil
}

func (c *course) phases(ctx context.Context) error {
	if c.Warm > 0 {
		if err := c.step(result.PhaseWarm); err != nil {
			return err
		}
		if err := c.warm(ctx); err != nil {
			return err
		}
	}
	switch {
	case c.series != nil:
		return c.count(ctx)
	case c.Change != nil:
		return c.change(ctx)
	}
	return c.last(ctx, result.PhaseMeasure, c.Measure)
}

// step begins a phase; begin has done so with the first. The last one ends when the
// load does, and not when this goroutine hears of it.
func (c *course) step(phase string) error {
	c.mark(phase)
	return c.enter(phase)
}

// mark is the part of step that takes no time. It gives the begin, ns.
func (c *course) mark(phase string) int64 {
	start := int64(0)
	if c.marked {
		start = min(c.now(), c.until.Load())
		c.tally.enter(phase, start)
		c.cpu = append(c.cpu, processSeconds())
	}
	c.marked = true
	return start
}

// warm lasts until the transactions per second have settled.
func (c *course) warm(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	end := time.NewTimer(max(c.Warm, c.WarmMax))
	defer end.Stop()
	least := time.NewTimer(c.Warm)
	defer least.Stop()
	var perSecond []float64
	before := int64(0)
	for warmed := false; ; {
		select {
		case <-ctx.Done():
			return c.broken(ctx)
		case err := <-c.failed:
			return err
		case <-least.C:
			if warmed = true; c.Settled == nil {
				return nil
			}
		case <-end.C:
			c.out.Unsettled = c.Settled != nil && !c.Settled(perSecond)
			return nil
		case <-tick.C:
			now := c.answered()
			perSecond = append(perSecond, float64(now-before))
			before = now
			if warmed && c.Settled != nil && c.Settled(perSecond) {
				return nil
			}
		}
	}
}

func (c *course) answered() int64 {
	sum := int64(0)
	for _, w := range c.workers {
		sum += w.record.answered.Load()
	}
	return sum
}

// last is the phase at whose end the load ends.
func (c *course) last(ctx context.Context, phase string, d time.Duration) error {
	start := c.mark(phase)
	c.endAt(start + int64(d))
	return c.stay(ctx, phase, start, d)
}

// pass is a phase of a length that others follow.
func (c *course) pass(ctx context.Context, phase string, d time.Duration) error {
	return c.stay(ctx, phase, c.mark(phase), d)
}

func (c *course) stay(ctx context.Context, phase string, start int64, d time.Duration) error {
	if err := c.enter(phase); err != nil {
		return err
	}
	return c.wait(ctx, time.Duration(start+int64(d)-c.now()))
}

// wait lets the load go on.
func (c *course) wait(ctx context.Context, d time.Duration) error {
	end := time.NewTimer(d)
	defer end.Stop()
	select {
	case <-end.C:
		return nil
	case err := <-c.failed:
		return err
	case <-ctx.Done():
		return c.broken(ctx)
	}
}

// count is the phase of a series, which its requests end.
func (c *course) count(ctx context.Context) error {
	if err := c.step(result.PhaseMeasure); err != nil {
		return err
	}
	if c.Warm > 0 {
		c.series.measuring.Store(true)
	}
	select {
	case <-c.series.done:
		return nil
	case err := <-c.failed:
		return err
	case <-ctx.Done():
		return c.broken(ctx)
	}
}

// change goes through idle, during and after.
func (c *course) change(ctx context.Context) error {
	if err := c.pass(ctx, result.PhaseIdle, c.Measure); err != nil {
		return err
	}
	if err := c.step(result.PhaseDuring); err != nil {
		return err
	}
	changing, cancel := context.WithTimeout(ctx, c.ChangeMax)
	defer cancel()
	done := make(chan error, 1)
	begin := time.Now()
	go func() { done <- c.Change(changing) }()
	var err error
	select {
	case err = <-done:
	case err = <-c.failed:
		cancel()
		<-done // nothing of ours may go on after Run
		return err
	}
	c.out.ChangeMs = millis(time.Since(begin))
	if err != nil {
		return fmt.Errorf("make the change: %w", err)
	}
	if err := c.wait(ctx, c.DuringMin-time.Since(begin)); err != nil {
		return err
	}
	return c.last(ctx, result.PhaseAfter, c.After)
}

// collect puts the record in the form of the result.
func (c *course) collect() error {
	bounds := c.tally.bounds
	for n, b := range bounds[:len(bounds)-1] {
		p := result.Phase{Name: b.phase, StartMs: float64(b.start-bounds[0].start) / 1e6, Ms: float64(bounds[n+1].start-b.start) / 1e6}
		if b.phase != result.PhaseWarm {
			// A change may rightly leave nothing but refusals.
			if err := c.tally.refused(n); err != nil && (b.phase == result.PhaseMeasure || b.phase == result.PhaseIdle) {
				return err
			}
			l, err := c.tally.load(n, c.labels)
			if err != nil {
				return fmt.Errorf("phase %s: %w", b.phase, err)
			}
			l.Generator["cpu_s"] = c.cpu[n+1] - c.cpu[n]
			p.Load = l
		}
		c.out.Phases = append(c.out.Phases, p)
	}
	if n := len(c.out.Phases); n > 0 && c.out.Phases[n-1].Load != nil {
		last := c.out.Phases[n-1].Load.Generator
		for _, w := range c.workers {
			last["reconnects"] += float64(w.reconnects)
			last["reconnects_refused"] += float64(w.refused)
		}
	}
	return nil
}

// processSeconds is the processor time of this process so far, all of it: what runs
// beside the load is counted as well.
func processSeconds() float64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
