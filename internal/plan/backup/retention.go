package backup

import (
	"time"

	"kurabe"
)

// Retention is what decides how long an automated snapshot is needed: as long as it
// is the newest sound one from which a moment can be restored that is within the days.
type Retention struct {
	Days int // in force; of an instance that is gone, those of its newest snapshot
	// Dropped says that the instance is being deleted together with its backups.
	Dropped bool
	// Gone says that the instance is.
	Gone bool
	// Newer is what History.Succeeded says of the snapshot.
	Newer time.Time
	// Until is the last moment that can be restored from this one, once the instance
	// is gone and no log follows; zero while the instance is there.
	Until time.Time
}

// expired says whether nothing needs an automated snapshot any more. A removal that
// was begun goes on, whatever is asked for meanwhile.
func (d *draft) expired() bool {
	r := d.w.Retention
	if r == nil || d.imported() && r.Gone {
		// What somebody brought back of an instance that is gone goes when somebody says
		// so: its retention may have been over before the import.
		return false
	}
	if d.status.State == kurabe.SnapshotDeleting {
		return true
	}
	why, at := r.end(d.w.Now)
	// One that was there and is lost may be found again, so it is kept like the others.
	never := d.status.State == kurabe.SnapshotFailed && d.status.Facts.TakenAt.IsZero() && !d.imported()
	if never && !r.Newer.IsZero() {
		why, at = "it failed, and a newer one is there", d.w.Now
	}
	if d.imported() && !r.Dropped && !at.IsZero() { // not below the hands of who has just brought it back
		at = later(at, d.status.Since.Add(time.Duration(max(r.Days, 1))*day))
	}
	switch {
	case at.IsZero():
		return false
	case at.After(d.w.Now):
		d.lookAgain(at)
		return false
	}
	d.because(why)
	return true
}

const day = 24 * time.Hour

// end is when the snapshot is no longer needed, zero while that is not known, and
// why. A moment within the retention needs the newest sound snapshot before it, so one
// goes when its successor is older than the retention.
func (r *Retention) end(now time.Time) (why string, at time.Time) {
	days := time.Duration(r.Days) * day
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

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
