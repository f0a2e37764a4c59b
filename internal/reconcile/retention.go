package reconcile

import (
	"time"

	"kurabe"
	"kurabe/internal/plan/backup"
	"kurabe/internal/store"
)

// history is the automated snapshots of an instance, and its log as far as its host
// has told of it.
func history(view *store.View, id kurabe.InstanceID, now time.Time) backup.History {
	h := backup.History{Now: now.UTC(), Backups: backups(view.SnapshotsOf(id))}
	if log, kept := view.LogOf(id); kept {
		h.Log = log
	} else if i, ok := view.Any(id); ok && len(i.Reports) > 0 {
		r, told := i.ReportOf(i.Writer())
		if !told {
			r = i.Reports[0].Value // all that is left of it
		}
		h.Log = r.Log()
	}
	return h
}

// backups are the automated ones among the snapshots of an instance.
func backups(list []*store.Snapshot) []backup.Backup {
	var out []backup.Backup
	for _, s := range list {
		if s.Spec == nil || s.Spec.Kind != kurabe.SnapshotAutomated || s.Spec.CopyOf != "" {
			continue
		}
		b := backup.Backup{ID: s.ID, Name: s.Spec.Name, CreatedAt: s.Spec.CreatedAt, State: kurabe.SnapshotCreating}
		if s.Status != nil {
			f := s.Status.Facts
			b.State, b.TakenAt, b.UsableAt, b.Position = s.Status.State, f.TakenAt, f.UsableAt, f.Position
			b.Host, b.Moved = s.Status.Host, s.Status.Reason == backup.WriterMoved
			b.Untrusted = s.Status.Verified != nil && !s.Status.Verified.OK
		}
		if s.Spec.Imported && b.TakenAt.IsZero() {
			b.TakenAt = s.Spec.CreatedAt // it is not in the making
		}
		if s.Spec.Deleting != nil {
			b.State = kurabe.SnapshotDeleting
		}
		out = append(out, b)
	}
	return out
}

// retention tells how long an automated snapshot is kept.
func retention(view *store.View, s *store.Snapshot, now time.Time) *backup.Retention {
	if s.Spec.Kind != kurabe.SnapshotAutomated || s.Spec.CopyOf != "" {
		return nil
	}
	h := history(view, s.Spec.Source.Instance, now)
	r := &backup.Retention{Days: s.Spec.Source.Settings.RetentionDays, Newer: h.Succeeded(s.ID)}
	i, ok := view.Instance(s.Spec.Source.Instance)
	switch {
	case !ok:
		r.Gone, r.Until = true, h.Until(s.ID)
		if newest, there := view.Snapshot(h.NewestID()); there && newest.Spec != nil {
			r.Days = newest.Spec.Source.Settings.RetentionDays
		}
	case i.Status != nil && i.Status.Applied.Class != "":
		r.Days = i.Status.Applied.RetentionDays
		d := i.Spec.Deleting
		a, assigned := i.AssignmentOf(i.Writer())
		r.Dropped = d != nil && !d.KeepBackups && assigned && a.Value.Goal == kurabe.GoalAbsent
	}
	return r
}
