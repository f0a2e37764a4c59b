package plan

import (
	"time"

	"kurabe"
)

// expired says whether nothing needs an automated snapshot any more. A removal that
// was begun goes on, whatever is asked for meanwhile.
func (d *snapshotDraft) expired() bool {
	r := d.w.Retention
	if r == nil {
		return false
	}
	if d.status.State == kurabe.SnapshotDeleting {
		return true
	}
	why, at := r.end(d.w.Now)
	if d.status.State == kurabe.SnapshotFailed && !r.Newer.IsZero() {
		why, at = "it failed, and a newer one is there", d.w.Now
	}
	switch {
	case at.IsZero():
		return false
	case at.After(d.w.Now):
		d.result.LookAgain = at
		return false
	}
	d.because(why)
	return true
}

// end is when the snapshot is no longer needed, zero while that is not known, and
// why. A moment within the retention needs the newest snapshot before it, so one
// goes when its successor is older than the retention.
func (r *Retention) end(now time.Time) (why string, at time.Time) {
	days := time.Duration(r.Days) * 24 * time.Hour
	switch {
	case r.Dropped:
		return "its instance is deleted together with its automated backups", now
	case r.Days == 0:
		return "automated backups were switched off", now
	case !r.Newer.IsZero():
		return "no moment within the retention needs it", r.Newer.Add(days)
	case !r.Until.IsZero():
		return "the retention of its deleted instance is over", r.Until.Add(days)
	}
	return "", time.Time{}
}
