package failover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"kurabe/internal/harness"
	"kurabe/test/bench/bed"
)

// makesMost is how often in a row a side may fail to become a whole pair before it is given up.
const makesMost = 3

// contender is a side whose turn comes in each round: its pair, and how there is another one
// when a loss leaves it in a state from which it does not come back.
type contender struct {
	*tally
	losses []*loss // what happens to it
	// make makes its pair, for the n-th time. drop takes one away that is in whatever state,
	// and leave one that is well.
	make        func(ctx context.Context, n int) (side, error)
	drop, leave func(context.Context, side) error

	side
	writes   bool                 // its client is at work
	verdict  harness.PulseVerdict // on the rows of this pair, the newest
	made     int                  // pairs so far
	failures int                  // to get a whole one, in a row
}

// inTurn takes the rounds of all in turn, those that the file does not have yet.
func (r *comparison) inTurn(ctx context.Context, all []*contender) error {
	turns := r.turns(all)
	for round := range r.rounds() {
		for _, n := range r.Rng.Perm(len(turns)) {
			r.round(ctx, turns[n], round)
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
	return nil
}

// turns are who goes through a round at the same time: each side by itself, and with --abreast
// all peers together.
func (r *comparison) turns(all []*contender) (list [][]*contender) {
	var abreast []*contender
	for _, c := range all {
		if r.Abreast && c.Role == rolePeer {
			abreast = append(abreast, c)
		} else {
			list = append(list, []*contender{c})
		}
	}
	if len(abreast) > 0 {
		list = append(list, abreast)
	}
	return list
}

// round has each thing happen once to those whose turn it is, in a random order. Their clients
// write meanwhile and not while it is another's turn. The next thing happens when all are whole
// again, or are to be made anew. Peers have the same losses.
func (r *comparison) round(ctx context.Context, turn []*contender, round int) {
	losses := turn[0].losses
	for _, n := range r.Rng.Perm(len(losses)) {
		var wait sync.WaitGroup
		going := slices.DeleteFunc(slices.Clone(turn), func(c *contender) bool { return !c.goes(ctx, r, losses[n], round) })
		for _, c := range going {
			wait.Go(func() { c.through(ctx, r, losses[n], round, len(going)-1) })
		}
		wait.Wait()
	}
	for _, c := range turn {
		c.rest()
	}
}

// goes says whether a thing is to happen to it: not if the file has that round of it.
func (c *contender) goes(ctx context.Context, r *comparison, x *loss, round int) bool {
	return c.rounds(x) <= round && !r.over() && c.Why == "" && ctx.Err() == nil
}

// through has a thing happen. After a loss that it does not come back from, the next one
// happens to another pair.
func (c *contender) through(ctx context.Context, r *comparison, x *loss, round, others int) {
	began := time.Now()
	p, ready := c.ready(ctx, r)
	if !ready {
		return
	}
	s := c.lose(ctx, x, p)
	if ctx.Err() != nil {
		return // what was cut off is no result
	}
	s.Round, s.Took, s.Abreast = round, time.Since(began).Seconds(), others
	c.count(s)
	r.Out.Sample(recordStrike, map[string]any{"strike": s})
	r.Out.Keep()
	if s.Failed != "" {
		r.Out.Say("  round %d, %s, %s: it did not come back: %s", round+1, c.Name, x.name, s.Failed)
		c.give(ctx, r)
		return
	}
	r.Out.Say("  round %d, %s, %s: %.2f s, %d of %d rows missing", round+1, c.Name, x.name, s.Seconds, s.Missing, s.Acked)
}

// lose has one thing happen to a whole pair, and reads the rows once it is whole again. What
// it has lost may be told even when it is not.
func (c *contender) lose(ctx context.Context, x *loss, p lostPair) strike {
	s := strike{Side: c.Name, Loss: x.name}
	var err error
	s.Seconds, err = x.strike(c.side, ctx, p)
	v, unread := c.client().Judge(ctx)
	if unread != nil {
		s.Unread, s.Acked = true, c.client().Acked()-c.verdict.Acked
	} else {
		s.since(c.verdict, v)
		c.verdict = v
	}
	if err = errors.Join(err, unread); err != nil {
		s.Failed = bed.OneLine(err)
	}
	return s
}

// ready is a whole pair with a client at work.
func (c *contender) ready(ctx context.Context, r *comparison) (lostPair, bool) {
	for ctx.Err() == nil {
		p, err := c.wholePair(ctx, r)
		if err == nil {
			c.failures = 0
			return p, true
		}
		if ctx.Err() != nil {
			break
		}
		c.failures++
		r.Out.Say("  %s is no whole pair: %v", c.Name, err)
		r.Out.Sample("broken", map[string]any{"side": c.Name, "why": bed.OneLine(err)})
		c.give(ctx, r)
		if c.failures == makesMost {
			c.Why = bed.OneLine(err)
			r.Out.Say("  %s is given up", c.Name)
			r.Out.Sample(recordSide, map[string]any{"about": c.about})
			break
		}
	}
	return lostPair{}, false
}

func (c *contender) wholePair(ctx context.Context, r *comparison) (p lostPair, err error) {
	if c.side == nil {
		c.made++
		r.Out.Say("  making the pair of %s", c.Name)
		if c.side, err = c.make(ctx, c.made); err != nil {
			return p, err
		}
		c.verdict = harness.PulseVerdict{}
		r.Out.Sample(recordSide, map[string]any{"about": c.about})
	}
	if !c.writes {
		c.client().Start()
		c.writes = true
	}
	if err := more(ctx, c.client(), pulseRows); err != nil {
		return p, err
	}
	return c.pair(ctx)
}

// rest has its client write no more until its next turn.
func (c *contender) rest() {
	if c.writes {
		c.client().Stop()
	}
	c.writes = false
}

// give takes a pair away that is of no use any more.
func (c *contender) give(ctx context.Context, r *comparison) {
	if c.side == nil {
		return
	}
	c.rest()
	r.Out.Say("  the pair of %s is taken away, and made anew", c.Name)
	if err := c.drop(ctx, c.side); err != nil {
		r.Out.Say("  %s: %v", c.Name, err)
	}
	c.side = nil
}

// end takes a pair away that has done its rounds.
func (c *contender) end(ctx context.Context) error {
	if c.side == nil || ctx.Err() != nil {
		return nil // the whole lab goes
	}
	last := c.side
	c.side = nil
	return c.leave(ctx, last)
}

// wrong is what of this run's losses a side of ours did not come back from.
func (c *contender) wrong() error {
	var errs []error
	if c.Why != "" {
		errs = append(errs, fmt.Errorf("%s was given up: %s", c.Name, c.Why))
	}
	for _, x := range c.losses {
		for _, reason := range c.broken(x) {
			errs = append(errs, fmt.Errorf("%s, %s: %s", c.Name, x.name, reason))
		}
	}
	return errors.Join(errs...)
}

// more waits until so many more rows were acknowledged.
func more(ctx context.Context, w writer, rows int) error {
	from := w.Acked()
	for deadline := time.Now().Add(pulseWait); w.Acked() < from+rows; _ = bed.Wait(ctx, bed.PollPause) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Now().After(deadline) {
			_, newest := w.Errors(deadline.Add(-pulseWait))
			return fmt.Errorf("%d rows in %s, the newest error: %v", w.Acked()-from, pulseWait, newest)
		}
	}
	return nil
}
