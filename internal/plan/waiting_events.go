package plan

import (
	"maps"
	"time"

	"kurabe"
	"kurabe/internal/event"
	"kurabe/internal/plan/tell"
)

// isTold says of a failure that it has been met often enough, or for long enough.
func isTold(f *kurabe.Failure, now time.Time) bool {
	return f.Attempts >= startTries || !f.Since.IsZero() && !now.Before(f.Since.Add(tell.WaitAfter))
}

func (d *draft) isTold(f *kurabe.Failure) bool {
	if isTold(f, d.w.Now) {
		return true
	}
	if !f.Since.IsZero() {
		d.lookAgain(f.Since.Add(tell.WaitAfter))
	}
	return false
}

// tellWaiting tells why servers other than the one that writes do not get on. The primary's own
// failure is the instance's (working).
func (d *draft) tellWaiting() {
	if d.next.Goal != kurabe.GoalRunning {
		d.status.SeenWaits = nil
		return
	}
	seen := map[kurabe.InstanceID]string{}
	for _, m := range d.group.Members {
		r := d.heardReport(m.ID)
		if m.ID == d.group.Primary || m.Leaving || r == nil || r.Failure == nil {
			continue
		}
		f, before := r.Failure, d.status.SeenWaits[m.ID]
		if !d.isTold(f) {
			continue
		}
		if seen[m.ID] = tell.Gist(f); seen[m.ID] != before {
			d.tell(event.ServerWaits.With(m.Zone, f.Step, f.Message))
		}
	}
	if len(seen) == 0 {
		seen = nil
	}
	if !maps.Equal(seen, d.status.SeenWaits) {
		d.status.SeenWaits = seen
	}
}
