package plan

import (
	"time"

	"kurabe"
)

const (
	// startsAtOnce is how many orders in a row to start a primary are given without a pause: it
	// can be killed twice. From the next on each waits longer, as an agent's own tries do.
	startsAtOnce  = 3
	startPause    = time.Second
	startPauseMax = 30 * time.Second
	// startsEnd is after how long an order is none of a row any more.
	startsEnd = 2 * startPauseMax
)

// mayOrderStart says whether a primary that does not run may be ordered again to start, and
// notes that it is. Each such order is a record of the state, and a server that cannot start
// ends within a moment.
func (d *draft) mayOrderStart() bool {
	s := &d.status
	since := d.w.Now.Sub(s.StartOrderedAt)
	if since > startsEnd || kurabe.AfterNow(s.StartOrderedAt, d.w.Now) {
		s.StartOrders = 0
	}
	if n := s.StartOrders - startsAtOnce; n >= 0 {
		pause := min(startPause<<min(n, 10), startPauseMax)
		if since < pause {
			d.lookAgain(s.StartOrderedAt.Add(pause))
			return false
		}
	}
	s.StartOrders, s.StartOrderedAt = s.StartOrders+1, d.w.Now
	return true
}
