package reconcile

import (
	"context"
	"maps"
	"slices"
	"time"

	"kurabe"
	"kurabe/internal/logkey"
	"kurabe/internal/plan"
	"kurabe/internal/plan/backup"
	"kurabe/internal/store"
)

// dueSnapshots lists the snapshots that may need a plan. There may be many more of
// them than of instances and hardly any is dirty, so all are walked only in a full
// scan.
func (l *Loop) dueSnapshots(dirty store.Dirty, now time.Time) []kurabe.SnapshotID {
	var due []kurabe.SnapshotID
	if dirty.All {
		for _, s := range l.View.Snapshots() {
			due = append(due, s.ID)
		}
		return due
	}
	due = slices.Collect(maps.Keys(dirty.Snapshots))
	for ref, at := range l.again {
		if ref.Kind == kurabe.KindSnapshot && !now.Before(at) {
			due = append(due, kurabe.SnapshotID(ref.ID))
		}
	}
	slices.Sort(due)
	return slices.Compact(due)
}

// planSnapshot plans one snapshot and writes what changed.
func (l *Loop) planSnapshot(ctx context.Context, term Term, id kurabe.SnapshotID, now time.Time) {
	delete(l.again, id.Ref())
	s, ok := l.View.Snapshot(id)
	if !ok {
		return
	}
	// An instance that is not known in full would look gone, and its snapshots with it.
	if of, ok := l.View.Any(s.Spec.Source.Instance); ok && l.leftAlone(of) {
		return
	}
	w := snapshotWorld(l.View, s, now)
	w.Verify = verification(l.View, s, l.VerifyEvery, now)
	result := backup.Next(w)
	log := l.Log.With(logkey.Snapshot, id)
	planned := func() {
		log.Info("planned", logkey.Generation, generation(result.Assignment, w.Assignment), logkey.Status, snapshotState(result, w), logkey.Reason, result.Reasons)
	}
	l.write(ctx, term, id.Ref(), result.LookAgain, snapshotChange(s, result), log, planned)
}

// snapshotChange is change for snapshots.
func snapshotChange(s *store.Snapshot, r backup.Result) *store.Change {
	change := store.NewChange()
	for _, e := range r.Events {
		change.AddEvent(told(e, s.Spec != nil && s.Spec.Source.Cluster))
	}
	if r.Gone {
		return change.DeleteSnapshot(s)
	}
	if r.Status == nil && r.Assignment == nil && len(r.FormerGone) == 0 {
		return change
	}
	change.RequireSnapshot(s.ID, s.SpecMod)
	if r.Status != nil {
		change.PutSnapshotStatus(*r.Status, s.StatusMod)
	}
	if r.Assignment != nil {
		have, _ := s.Assignment(r.Assignment.Host)
		change.PutAssignment(*r.Assignment, have.ModRevision)
	}
	if r.Former != nil {
		have, _ := s.Assignment(r.Former.Host)
		change.PutAssignment(*r.Former, have.ModRevision)
	}
	for _, host := range r.FormerGone {
		have, _ := s.Assignment(host)
		change.DeleteAssignment(host, s.ID.Ref(), have.ModRevision)
	}
	return change
}

// snapshotWorld gathers what the plan of one snapshot may depend on.
func snapshotWorld(view *store.View, s *store.Snapshot, now time.Time) backup.World {
	w := backup.World{Now: now.UTC(), Spec: s.Spec, Status: s.Status, Readers: readers(view, s.ID), Damage: damage(view, s.ID)}
	for n := range s.Assignments {
		a := s.Assignments[n].Value
		r := snapshotReport(view, s, a)
		if len(s.Assignments) == 1 || s.Status != nil && s.Status.Host == a.Host {
			w.Assignment, w.Report = &a, r
		} else {
			w.Former = append(w.Former, backup.FormerOrder{Order: a, Report: r})
		}
	}
	if i, ok := view.Any(s.Spec.Source.Instance); ok {
		if s.Status == nil || s.Status.State == kurabe.SnapshotCreating {
			addStandbys(view, i, &w)
		}
		// The one that writes has every commit, and the log that goes with the copy.
		if a, ok := i.AssignmentOf(i.Writer()); ok {
			w.Instance = &a.Value
		}
	}
	if from, ok := view.Snapshot(s.Spec.CopyOf); ok {
		w.From = from.Status
	}
	w.Retention = retention(view, s, now)
	if s.Spec.Imported {
		w.Hosts = view.Hosts()
	}
	return w
}

// snapshotReport is what the host of an order says of it, nil for nothing yet.
func snapshotReport(view *store.View, s *store.Snapshot, a kurabe.SnapshotAssignment) *kurabe.SnapshotReport {
	if r := goneSnapshot(view, a); r != nil {
		return r
	}
	if r, ok := s.Report(a.Host); ok {
		return &r
	}
	return nil
}

// addStandbys tells of the servers that a snapshot may be taken of.
func addStandbys(view *store.View, i *store.Instance, w *backup.World) {
	if w.Group = i.Group; w.Group == nil {
		return
	}
	w.ClosedHosts, w.Reports, w.Clones = away(view), map[kurabe.InstanceID]*kurabe.InstanceReport{}, map[kurabe.HostID]bool{}
	for _, h := range view.Hosts() {
		w.Clones[h.Host] = h.Clones
	}
	for _, m := range w.Group.Members {
		if r, ok := i.ReportOf(m.ID); ok {
			w.Reports[m.ID] = &r
		}
	}
}

// away says of hosts why nothing new is to be asked of them.
func away(view *store.View) map[kurabe.HostID]string {
	why := map[kurabe.HostID]string{}
	for _, h := range view.Hosts() {
		switch since := view.LostSince(h.Host); {
		case view.Gone(h.Host):
			why[h.Host] = "it is gone for good"
		case !since.IsZero():
			why[h.Host] = "it has not been heard since " + since.UTC().Format(time.RFC3339)
		case view.Emptied(h.Host) != "":
			why[h.Host] = view.Emptied(h.Host)
		}
	}
	return why
}

// readers tells in words who still reads the files of a snapshot: an instance that
// is made of it and was never available, and a copy under way.
func readers(view *store.View, id kurabe.SnapshotID) []string {
	var out []string
	for _, i := range view.RestoredFrom(id) {
		if i.Status != nil && !i.Status.AvailableAt.IsZero() {
			continue
		}
		// One that was never assigned reads nothing yet, but is going to.
		name := ""
		if i.Spec != nil && i.Spec.Deleting == nil {
			name = i.Name()
		}
		for _, a := range i.Assignments {
			if a.Value.Goal != kurabe.GoalAbsent {
				name = a.Value.Name
			}
		}
		if name != "" {
			out = append(out, "the restore of DB instance "+name)
		}
	}
	for _, c := range view.CopiesOf(id) {
		if c.Spec != nil && c.Spec.Deleting == nil && c.Status == nil || c.Status != nil && c.Status.State == kurabe.SnapshotCopying {
			out = append(out, "its copy "+c.Name())
		}
	}
	return out
}

// addSnapshots tells what snapshots mean for the plan of their instance.
func (f *fleet) addSnapshots(i *store.Instance, w *plan.World) {
	snapshots := f.view.SnapshotsOf(i.ID)
	w.BackingUp = slices.ContainsFunc(snapshots, beingTaken)
	w.Backups = backups(snapshots)
	if i.Spec.Deleting == nil {
		return
	}
	if final, ok := f.view.Snapshot(i.Spec.Deleting.FinalSnapshot); ok {
		w.Final = final.Status
	}
}

// beingTaken says whether a snapshot still needs its instance. One that was asked
// for and never planned does: the instance must not go in between.
func beingTaken(s *store.Snapshot) bool {
	switch {
	case s.Spec == nil || s.Spec.CopyOf != "" || s.Spec.Imported:
		return false
	case s.Status == nil:
		return s.Spec.Deleting == nil
	}
	return s.Status.State == kurabe.SnapshotCreating
}

func snapshotState(r backup.Result, w backup.World) kurabe.SnapshotState {
	switch {
	case r.Gone:
		return "gone"
	case r.Status != nil:
		return r.Status.State
	case w.Status != nil:
		return w.Status.State
	}
	return ""
}
