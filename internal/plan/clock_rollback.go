package plan

import "time"

// correctAfterClockRollback sets the beginning of each pause that lies in the future to the
// present: the clock was set back since it was noted, or an earlier planner's clock is ahead of
// this one. So a pause lasts at most once more. To call it over would be wrong: two planners whose
// clocks differ would each find it over in turn.
func (d *draft) correctAfterClockRollback() {
	s := &d.status
	for _, at := range []*time.Time{
		&s.RebuiltAt, &s.ReplicationBrokenSince, &s.ReplicationCheckedAt, &s.StoppedAt, &s.Waits.AnnouncedAt,
		&s.Storage.ChangedAt, &s.Storage.LowSince, &s.Storage.HandedOverAt,
	} {
		if at.After(d.w.Now) {
			*at = d.w.Now
		}
	}
}

// capDeadline limits a deadline to length from now, so that a clock that was set back does not
// extend it.
func (d *draft) capDeadline(by *time.Time, length time.Duration) {
	if last := d.w.Now.Add(length); by.After(last) {
		*by = last
	}
}
