package plan

import (
	"time"
)

// BackupDue says, for people, when the next automated snapshot of an instance is made
// and why then. The moment is zero while it waits for what no clock tells, and so is
// all when none is to be made. A moment that has come waits only for the instance to
// be available.
func BackupDue(w World) (at time.Time, why string) {
	switch {
	case w.Spec.Deleting != nil || w.Status == nil || !w.Status.Applied.KeepsLog() || w.Status.Source != "":
		return time.Time{}, ""
	case w.Report == nil:
		return time.Time{}, "the host has not reported"
	}
	d := begin(w)
	why, wait := d.backupDue()
	switch {
	case wait:
		return time.Time{}, why
	case why != "":
		return w.Now, why
	case len(d.result.Reasons) > 0:
		return d.result.LookAgain, d.result.Reasons[0]
	}
	if at = d.result.LookAgain; at.Equal(d.history().lastMade().Add(backupOverdue)) {
		return at, "the newest is older than " + backupOverdue.String() + " then"
	}
	return at, "the backup window " + w.Spec.BackupWindow + " UTC opens"
}
