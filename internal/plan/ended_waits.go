package plan

import (
	"time"

	"kurabe"
	"kurabe/internal/event"
)

// waitsPause is between two events that tell of commits which ended their wait early: who ends
// waits by a time limit does so all the time.
const waitsPause = 10 * time.Minute

// tellWaits counts the commits that ended their wait for a standby before one had answered, and
// tells of them: the first at once, more of them as a sum. It also tells when another server
// has them, if that was not so at first.
func (d *draft) tellWaits() {
	s := &d.status.Waits
	var primary kurabe.ServerWaits
	for n, m := range d.group.Members {
		r := d.reported(m.ID)
		if r == nil || r.Role == nil || r.Role.Waits == nil {
			continue
		}
		s.WaitCount = s.WaitCount.Plus(r.Role.Waits.Since(m.Waits))
		d.group.Members[n].Waits = r.Role.Waits.WaitCount
		if m.ID == d.group.Primary {
			primary, s.Uncounted = *r.Role.Waits, r.Role.Waits.Uncounted
			if s.UnreplicatedAt == m.ID && !primary.Unreplicated {
				s.UnreplicatedAt = ""
				d.tell(event.WaitsSettled)
			}
		}
	}
	if s.UnreplicatedAt != "" && s.UnreplicatedAt != d.group.Primary {
		s.UnreplicatedAt = "" // what nobody else had is counted when that one follows (tellGivenUp)
	}
	d.tellEndedWaits(primary.Unreplicated)
}

// tellEndedWaits tells of those that no event has told of. One whose session ended had no answer,
// so where another server has it there is nothing to tell: a stop in order ends so.
func (d *draft) tellEndedWaits(alone bool) {
	s := &d.status.Waits
	fresh := s.Since(s.Announced)
	if fresh.Cancelled == 0 && (fresh.Ended == 0 || !alone) {
		return
	}
	if again := s.AnnouncedAt.Add(waitsPause); d.w.Now.Before(again) {
		d.lookAgain(again)
		return
	}
	since := ""
	if !s.AnnouncedAt.IsZero() {
		since = " since " + s.AnnouncedAt.UTC().Format(time.RFC3339)
	}
	where := "Another server has them by now"
	if alone {
		where = "No other server is known to have them yet: a failover before that would take them away, and " + event.CommitsGivenUp.ID + " would count them"
		s.UnreplicatedAt = d.group.Primary
	}
	d.tell(event.WaitsEnded.With(fresh.Sum(), since, fresh.Cancelled, fresh.Ended, where))
	s.Announced, s.AnnouncedAt = s.WaitCount, d.w.Now
}
