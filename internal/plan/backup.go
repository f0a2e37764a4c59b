package plan

import (
	"slices"
	"strconv"
	"time"

	"kurabe"
)

const (
	// backupOverdue is how old the newest automated snapshot may be before another is
	// made outside the window: the service or the database was down when it was open.
	backupOverdue = 36 * time.Hour
	// backupRetry is how long one that failed is not tried again.
	backupRetry = 10 * time.Minute
	// logPatience is how long a first snapshot waits for the log to be followed: one
	// that is older than its log is of no use to it, but better than none.
	logPatience = time.Minute
	// backupsAnHour bounds the snapshots that gaps of the log ask for.
	backupsAnHour = 6
)

// planBackup makes the automated snapshots: the first as soon as the instance is
// available, then one a day in the backup window, and one after a gap in the log,
// without which no moment after the gap could be restored.
func (d *draft) planBackup() {
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
	newest, failed := d.newestBackups()
	// One that failed in the future did so before the clock went back.
	if again := failed.CreatedAt.Add(backupRetry); failed.Name != "" && !failed.CreatedAt.After(d.w.Now) && d.w.Now.Before(again) {
		d.because("the last automated snapshot failed; another is tried at " + again.Format(time.RFC3339))
		d.lookAgain(again)
		return "", false
	}
	since := d.w.Report.LogSince
	if newest.Name == "" {
		if late := d.status.LogWantedAt.Add(logPatience); since.IsZero() && d.w.Now.Before(late) {
			d.lookAgain(late)
			return "the first automated snapshot waits for the log to be followed", true
		}
		return "its first", false
	}
	if !newest.TakenAt.IsZero() && (since.After(newest.TakenAt) || newest.before(d.w.Report.LogFrom)) {
		if again := d.gapPause(); again.After(d.w.Now) {
			d.because("the log had a gap again; another snapshot is made at " + again.Format(time.RFC3339))
			d.lookAgain(again)
			return "", false
		}
		return "the log has a gap before " + since.Format(time.RFC3339), false
	}
	if d.untrusted(newest) {
		return "the newest failed its verification", false
	}
	return d.backupTime(newest)
}

// gapPause is when a gap may be answered with a snapshot: where the log breaks again
// and again, they would fill the disk.
func (d *draft) gapPause() time.Time {
	var recent []time.Time
	for _, b := range d.w.Backups {
		if at := b.CreatedAt.Add(time.Hour); at.After(d.w.Now) {
			recent = append(recent, at)
		}
	}
	if len(recent) < backupsAnHour {
		return d.w.Now
	}
	return slices.MinFunc(recent, time.Time.Compare)
}

// backupTime says whether the daily snapshot is due, and when to look otherwise.
func (d *draft) backupTime(newest Backup) (string, bool) {
	late := newest.CreatedAt.Add(backupOverdue)
	if !d.w.Now.Before(late) {
		return "the newest is older than " + backupOverdue.String(), false
	}
	d.lookAgain(late)
	w, err := kurabe.ParseBackupWindow(d.w.Spec.BackupWindow)
	if err != nil {
		d.because("the backup window cannot be read: " + err.Error())
		return "", false
	}
	opened, open, next := w.Next(d.w.Now)
	if open && newest.CreatedAt.Before(opened) {
		return "the backup window is open", false
	}
	d.lookAgain(next)
	return "", false
}

// newestBackups returns the newest automated snapshot that is there or being made,
// and the newest one that failed after it.
func (d *draft) newestBackups() (newest, failed Backup) {
	for _, b := range d.w.Backups {
		switch b.State {
		case kurabe.SnapshotDeleting:
		case kurabe.SnapshotFailed:
			if b.CreatedAt.After(failed.CreatedAt) {
				failed = b
			}
		default:
			if newest.Name == "" || b.follows(newest) {
				newest = b
			}
		}
	}
	if failed.CreatedAt.Before(newest.CreatedAt) {
		failed = Backup{}
	}
	return newest, failed
}

// follows says whether a backup is newer than another. Their positions in the log tell
// it also when the clock went back in between.
func (b Backup) follows(o Backup) bool {
	if b.Position.File != "" && o.Position.File != "" && b.Position != o.Position {
		return b.Position.Compare(o.Position) > 0
	}
	if b.TakenAt.IsZero() != o.TakenAt.IsZero() {
		return b.TakenAt.IsZero() // it is in the making
	}
	return b.CreatedAt.After(o.CreatedAt)
}

// before says whether a backup lies before a place in the log.
func (b Backup) before(p kurabe.LogPosition) bool {
	return b.Position.File != "" && p.File != "" && b.Position.Compare(p) < 0
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

// announceLog tells of a gap in the log, once: from then on the latest restorable
// time stands still until the next snapshot.
func (d *draft) announceLog() {
	r := d.w.Report
	if !d.status.Applied.KeepsLog() {
		d.status.LogWantedAt, d.status.LogBegan, d.status.LogEnded = time.Time{}, time.Time{}, ""
		return
	}
	if d.status.LogWantedAt.IsZero() {
		d.status.LogWantedAt = d.w.Now
	}
	if r == nil {
		return
	}
	// What ended before the log was wanted is no news.
	followed := !d.status.LogBegan.IsZero()
	if followed && r.LogEnded != "" && r.LogEnded != d.status.LogEnded {
		d.event("KURABE-EVENT-0004", "The log of the DB instance has a gap, and its latest restorable time stands still until the next automated snapshot: "+r.LogEnded, "backup", "notification")
	}
	if followed && r.LogBegan.After(d.status.LogBegan) {
		d.event("KURABE-EVENT-0005", "The log of the DB instance is followed again", "backup", "notification")
	}
	d.status.LogEnded = r.LogEnded
	if !r.LogBegan.IsZero() {
		d.status.LogBegan = r.LogBegan
	}
}
