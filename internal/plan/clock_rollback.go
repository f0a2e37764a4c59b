package plan

import "time"

// meetSetBack takes the beginning of a pause that lies ahead for now: the clock was set back
// since it was noted, or an earlier planner's is ahead of ours. So no pause lasts longer than
// once more. That it were over would be no answer to two planners whose clocks differ, of which
// each would find so in turn: a pause is there because what comes after it costs.
func (d *draft) meetSetBack() {
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

// within brings a deadline no further ahead than it was when it was set, whatever has become of
// the clock since.
func (d *draft) within(by *time.Time, length time.Duration) {
	if last := d.w.Now.Add(length); by.After(last) {
		*by = last
	}
}
