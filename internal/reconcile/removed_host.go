package reconcile

import (
	"kurabe"
	"kurabe/internal/plan"
	"kurabe/internal/plan/backup"
	"kurabe/internal/store"
)

// addGone says in the place of hosts that never come back what a person has said of them:
// what is to be removed there is not there any more. Of the rest their last words stand.
func (f *fleet) addGone(i *store.Instance, w *plan.World) {
	for id, a := range w.Members {
		if !f.gone[a.Host] || a.Goal != kurabe.GoalAbsent {
			continue
		}
		w.Reports[id] = &kurabe.InstanceReport{Host: a.Host, Instance: id, Generation: a.Generation, Done: true, Absent: true}
	}
	w.Report = w.Reports[i.Writer()]
}

// goneSnapshot is what a host that never comes back would say of a snapshot.
func goneSnapshot(view *store.View, a kurabe.SnapshotAssignment) *kurabe.SnapshotReport {
	if !view.Gone(a.Host) {
		return nil
	}
	r := &kurabe.SnapshotReport{Host: a.Host, Snapshot: a.Snapshot, Generation: a.Generation}
	if a.Goal == kurabe.SnapshotAbsent {
		r.Done, r.Absent = true, true
		return r
	}
	r.Failure = &kurabe.Failure{Kind: kurabe.FailureOther, Step: "find", Message: "host " + string(a.Host) + " is gone for good", Attempts: backup.Tries}
	return r
}
