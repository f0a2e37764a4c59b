package load

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kurabe/lab/result"
)

// toolCourse leads a tool through warm-up and measuring: two runs of it. One run over
// both, cut by the times in its log, would warm the sessions as well, but what the tools
// sum up themselves, as pgbench -r its statements, would then count the warm-up too.
type toolCourse struct {
	Options
	// run runs the tool for whole seconds. perSecond, nil for none, is told the
	// transactions of each. The end of ctx ends the tool, without a result.
	run func(ctx context.Context, seconds int, measured bool, perSecond func(float64)) (*result.Load, error)
}

func (c toolCourse) lead(ctx context.Context) (*Outcome, error) {
	if c.Change != nil {
		return nil, errors.New("only the own generator makes load around a change")
	}
	start := time.Now()
	out := &Outcome{}
	if c.Warm > 0 {
		if err := c.enter(result.PhaseWarm); err != nil {
			return nil, err
		}
		settled, err := c.warm(ctx)
		if err != nil {
			return nil, fmt.Errorf("warm up: %w", err)
		}
		out.Unsettled = !settled
		out.Phases = append(out.Phases, result.Phase{Name: result.PhaseWarm, Ms: millis(time.Since(start))})
	}
	begin := time.Now()
	if err := c.enter(result.PhaseMeasure); err != nil {
		return nil, err
	}
	l, err := c.run(ctx, wholeSeconds(c.Measure), true, nil)
	if err != nil {
		return nil, err
	}
	p := result.Phase{Name: result.PhaseMeasure, StartMs: millis(begin.Sub(start)), Ms: millis(time.Since(begin)), Load: l}
	if err := c.enter(""); err != nil {
		return nil, err
	}
	out.Phases = append(out.Phases, p)
	return out, nil
}

// warm runs the tool until its rate has settled, and ends it then.
func (c toolCourse) warm(ctx context.Context) (bool, error) {
	most := wholeSeconds(c.Warm)
	if c.Settled != nil {
		most = wholeSeconds(max(c.Warm, c.WarmMax))
	}
	warming, cancel := context.WithCancel(ctx)
	defer cancel()
	begin := time.Now()
	var seen []float64
	settled := c.Settled == nil
	watch := func(rate float64) {
		if len(seen) >= most || settled {
			return
		}
		seen = append(seen, rate)
		if time.Since(begin) >= c.Warm && c.Settled(seen) {
			settled = true
			cancel()
		}
	}
	_, err := c.run(warming, most, false, watch)
	if err != nil && settled && ctx.Err() == nil && errors.Is(err, context.Canceled) {
		return true, nil // ended by us
	}
	if err == nil && !settled {
		settled = c.Settled(seen)
	}
	return settled, err
}
