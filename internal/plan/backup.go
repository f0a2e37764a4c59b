package plan

import (
	"slices"
	"strconv"
	"time"

	"kurabe"
	"kurabe/internal/event"
	"kurabe/internal/plan/backup"
)

const (
	// backupRetry is how long one that failed is not tried again.
	backupRetry = 10 * time.Minute
	// logPatience is how long a first snapshot waits for the log to be followed: one
	// that is older than its log is of no use to it, but better than none.
	logPatience = time.Minute
	// backupsAnHour bounds the snapshots that gaps of the log ask for.
	backupsAnHour = 6
)

func (d *draft) history() backup.History {
	return backup.History{Now: d.w.Now, Log: d.w.Report.Log(), Backups: d.w.Backups}
}

// planBackup makes the automated snapshots: the first as soon as the instance is
// available, then one a day in the backup window, and one after a gap in the log,
// without which no moment after the gap could be restored.
func (d *draft) planBackup() {
	if d.follows() {
		return // those of its time as a source are kept, and its log ends with that
	}
	d.announceLog()
	if d.status.Applied.RetentionDays == 0 || d.status.State != kurabe.StateAvailable {
		return
	}
	why, wait := d.backupDue()
	switch {
	case wait:
		d.because(why)
	case why != "":
		d.result.Snapshot = d.newBackup()
		d.because("automated snapshot: " + why)
	default:
		return
	}
	d.status.State = kurabe.StateBackingUp
}

// backupDue says why a snapshot is due, or what it waits for; "" for none.
func (d *draft) backupDue() (why string, wait bool) {
	h := d.history()
	live := h.Live()
	if failed := h.LastFailed(); !failed.IsZero() && d.w.Now.Before(failed.Add(backupRetry)) {
		again := failed.Add(backupRetry)
		d.because("the last automated snapshot failed; another is tried at " + again.Format(time.RFC3339))
		d.lookAgain(again)
		return "", false
	}
	since := d.w.Report.LogSince
	if len(live) == 0 {
		if late := d.status.LogWantedAt.Add(logPatience); since.IsZero() && d.w.Now.Before(late) && !kurabe.AfterNow(d.status.LogWantedAt, d.w.Now) {
			d.lookAgain(late)
			return "the first automated snapshot waits for the log to be followed", true
		}
		return "its first", false
	}
	switch {
	case !since.IsZero() && !h.Covered():
		why = "the log has a gap before " + since.Format(time.RFC3339)
		if c := d.w.Report.LogContinues; c != nil && c.Elsewhere {
			why = "another host writes since " + since.Format(time.RFC3339)
		}
	case backup.Untrusted(live):
		why = "the newest failed its verification"
	default:
		return d.backupTime(h)
	}
	if again := d.outOfTurn(); again.After(d.w.Now) {
		d.because("another automated snapshot out of turn is made at " + again.Format(time.RFC3339) + ": " + why)
		d.lookAgain(again)
		return "", false
	}
	return why, false
}

// outOfTurn is when a snapshot may be made that the schedule does not ask for: where
// the log breaks again and again, they would fill the disk.
func (d *draft) outOfTurn() time.Time {
	var recent []time.Time
	for _, b := range d.w.Backups {
		if at := b.CreatedAt.Add(time.Hour); at.After(d.w.Now) && !kurabe.AfterNow(b.CreatedAt, d.w.Now) {
			recent = append(recent, at)
		}
	}
	if len(recent) < backupsAnHour {
		return d.w.Now
	}
	return slices.MinFunc(recent, time.Time.Compare)
}

// backupTime says whether the daily snapshot is due, and when to look otherwise. Where
// the clock went back behind all that there are, only the window says it.
func (d *draft) backupTime(h backup.History) (string, bool) {
	last := h.LastMade()
	if !last.IsZero() {
		late := last.Add(backup.Overdue)
		if !d.w.Now.Before(late) {
			return "the newest is older than " + backup.Overdue.String(), false
		}
		d.lookAgain(late)
	}
	w, err := kurabe.ParseBackupWindow(d.w.Spec.BackupWindow)
	if err != nil {
		d.because("the backup window cannot be read: " + err.Error())
		return "", false
	}
	opened, open, next := w.Next(d.w.Now)
	if open && last.Before(opened) {
		return "the backup window is open", false
	}
	d.lookAgain(next)
	return "", false
}

// newBackup is the spec of an automated snapshot, named as RDS names them.
func (d *draft) newBackup() *kurabe.SnapshotSpec {
	s := d.w.Spec
	source := kurabe.SourceOf(s, d.status)
	base := "rds:" + source.Name + "-" + d.w.Now.UTC().Format("2006-01-02-15-04")
	name := base
	taken := map[string]bool{}
	for _, b := range d.w.Backups {
		taken[b.Name] = true
	}
	for n := 2; taken[name]; n++ {
		name = base + "-" + strconv.Itoa(n)
	}
	spec := &kurabe.SnapshotSpec{
		ID: kurabe.AutomatedSnapshotID(s.ID, d.w.Now), Name: name, Revision: 1, Kind: kurabe.SnapshotAutomated,
		CreatedAt: d.w.Now, OriginalAt: d.w.Now, Source: source, OptionGroup: s.OptionGroup,
	}
	if s.CopyTagsToSnapshot {
		spec.Tags = s.Tags
	}
	return spec
}

// goesBack says whether the run of a log that goes on has all that was written since the end of
// one which was older than the one that was announced last.
func goesBack(r *kurabe.InstanceReport, announced time.Time) bool {
	return r.LogContinues != nil && r.LogContinues.Began.Before(announced)
}

// continues says whether the run of a log that goes on is one without a gap with the one that
// began then.
func continues(r *kurabe.InstanceReport, began time.Time) bool {
	c := r.LogContinues
	return c != nil && (c.Began.Equal(began) || slices.ContainsFunc(c.Before, func(o kurabe.LogRun) bool { return o.Began.Equal(began) }))
}

// announceLog tells of a gap in the log, once: from then on the latest restorable
// time stands still until the next snapshot. What another host than the one that told last
// says of earlier is no news.
func (d *draft) announceLog() {
	r, s := d.w.Report, &d.status
	if !s.Applied.KeepsLog() {
		s.LogWantedAt, s.LogBegan, s.LogEnded, s.LogHost = time.Time{}, time.Time{}, "", ""
		return
	}
	if s.LogWantedAt.IsZero() {
		s.LogWantedAt = d.w.Now
	}
	if r == nil {
		return
	}
	// What ended before the log was wanted is no news.
	followed, ended := !s.LogBegan.IsZero(), r.LogEnded
	moved := followed && s.LogHost != "" && s.LogHost != r.Host
	switch {
	case moved && r.LogBegan.IsZero():
		return
	case moved && (continues(r, s.LogBegan) || goesBack(r, s.LogBegan)):
		moved, ended = false, "" // the hosts share a repository
	case moved:
		ended = "since a failover a server on another host writes it"
	case ended == s.LogEnded:
		ended = ""
	}
	if followed && ended != "" {
		d.tell(event.LogGap.With(ended))
		if r.LogDamaged && !moved { // a host of the version before does not say so: the daily check finds it
			d.checkLogNow()
		}
	}
	if moved || followed && r.LogBegan.After(s.LogBegan) && !continues(r, s.LogBegan) && !goesBack(r, s.LogBegan) {
		d.tell(event.LogFollowed)
		if r.LogEnded == "" { // nothing of what was before is left, not even its end
			d.checkLogNow()
		}
	}
	s.LogEnded = r.LogEnded
	if !r.LogBegan.IsZero() {
		s.LogBegan, s.LogHost = r.LogBegan, r.Host
	}
}

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
	if at = d.result.LookAgain; at.Equal(d.history().LastMade().Add(backup.Overdue)) {
		return at, "the newest is older than " + backup.Overdue.String() + " then"
	}
	return at, "the backup window " + w.Spec.BackupWindow + " UTC opens"
}
