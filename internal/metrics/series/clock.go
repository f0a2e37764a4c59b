package series

import (
	"errors"
	"sync/atomic"
	"time"
)

// errClockBack is why a store is opened again without the samples that are ahead of the clock.
var errClockBack = errors.New("the clock was set back")

const (
	// clockStep is a step of the clock that is no pause of this process.
	clockStep = time.Minute
	// clockProof is for how long a clock goes on without a step before old series are removed by
	// its word: a clock that is wrong for a moment would remove them all.
	clockProof = time.Hour
)

// clock judges the machine's clock, at each tick of a second.
type clock struct {
	ticks  int64
	last   time.Time
	proof  int64 // ticks until it is trusted
	behind int64 // ticks for which it has been behind the newest sample
	// trusted says whether what is too old by this clock may be removed.
	trusted atomic.Bool
	now     atomic.Int64 // Unix time of the last tick, ms
}

// begin starts to judge; newest is of the newest sample, zero without one.
func (c *clock) begin(newest time.Time) {
	c.last, c.behind = newest, 0
	c.trusted.Store(newest.IsZero())
}

func (c *clock) tick(now time.Time) {
	now = now.Round(0) // the difference of the wall clock
	c.ticks++
	c.proof--
	if step := now.Sub(c.last); !c.last.IsZero() && (step < -time.Second || step > clockStep) {
		c.proof = int64(clockProof / time.Second)
	}
	c.last = now
	c.now.Store(now.UnixMilli())
	c.trusted.Store(c.proof <= 0)
}

// back says whether the clock is to be believed although samples are ahead of it.
func (c *clock) back(now time.Time, newest int64) bool {
	if now.UnixMilli() >= newest {
		c.behind = 0
		return false
	}
	c.behind++
	return c.behind > int64(clockBackTime/time.Second)
}
