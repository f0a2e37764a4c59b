package plan

import (
	"fmt"
	"time"

	"kurabe"
)

// catchUpMost is how long a failover in order waits for a standby that is behind. One that is so
// for longer is so all the time, and whoever asks for a failover is not to wait for ever.
const catchUpMost = 10 * time.Second

// catchesUp says whether a failover in order waits until the standby has applied what it has:
// clients go on meanwhile, and afterwards they would wait for just that. A writer whose disk is
// nearly full has no time.
func (d *draft) catchesUp(to kurabe.InstanceID) bool {
	r := d.heard(to)
	if d.handOverForDisk || r == nil || r.Role == nil || !r.Role.ApplyLags {
		return false
	}
	if d.status.CatchUpBy.IsZero() {
		d.status.CatchUpBy = d.w.Now.Add(catchUpMost)
	}
	if !d.w.Now.Before(d.status.CatchUpBy) {
		return false
	}
	d.because(fmt.Sprintf("the failover waits until %s has applied what it has, until %s at the latest", to, d.status.CatchUpBy.UTC().Format(time.RFC3339)))
	d.lookAgain(d.status.CatchUpBy)
	return true
}
