package reconcile

import (
	"kurabe"
	"kurabe/internal/plan"
	"kurabe/internal/store"
)

// addServers tells of every server of an instance, and of the one that writes.
func addServers(i *store.Instance, w *plan.World) {
	w.Group = i.Group
	w.Members = map[kurabe.InstanceID]*kurabe.Assignment{}
	w.Reports = map[kurabe.InstanceID]*kurabe.InstanceReport{}
	for _, record := range i.Assignments {
		id := record.Value.Instance
		have, _ := i.AssignmentOf(id)
		w.Members[id] = &have.Value
		// Without an assignment, a report is what a host has not dropped yet: of no use.
		if r, ok := i.ReportOf(id); ok {
			w.Reports[id] = &r
		}
	}
	for _, o := range i.Tasks {
		w.Tasks = append(w.Tasks, o.Value)
	}
	for _, r := range i.TaskReports {
		w.TaskReports = append(w.TaskReports, r.Value)
	}
	w.Assignment, w.Report = w.Members[i.Writer()], w.Reports[i.Writer()]
}

// places says whether the plan of an instance may give a server a host or an address: one
// that was never placed, one whose port is taken, and any server of a group, which gets
// further ones long after the first, and addresses when another one writes.
func places(i *store.Instance, w plan.World) bool {
	r := w.Report
	taken := r != nil && r.Failure != nil && r.Failure.Kind == kurabe.FailureNetwork
	return w.Assignment == nil || taken || grouped(i)
}

// grouped says whether an instance has a group, or is to have one: then its plan is made
// from that record, and no other.
func grouped(i *store.Instance) bool {
	switch {
	case i.Group != nil:
		return true
	case i.Spec == nil:
		return false
	}
	return i.Spec.Source != "" || i.Status != nil && i.Status.Source != "" || i.Spec.Now.MultiAZ || i.Spec.Next != nil && i.Spec.Next.MultiAZ || i.Status != nil && i.Status.Applied.MultiAZ
}

// changeGroup adds what a plan says of who writes, and of the servers beside the one that
// does. A plan that was made from the group holds only while the group is the one it was
// made from, or is still absent; so it is compared even when it stays.
func changeGroup(change *store.Change, i *store.Instance, r plan.Result) {
	switch {
	case r.Group != nil:
		change.PutGroup(*r.Group, i.GroupMod)
	case r.GroupGone:
		change.DeleteGroup(i.ID, i.GroupMod)
	case grouped(i):
		change.RequireGroup(i.ID, i.GroupMod)
	}
	for _, a := range r.Members {
		change.PutAssignment(a, assignmentMod(i, a))
	}
	for _, id := range r.MembersGone {
		for _, a := range i.Assignments {
			if a.Value.Instance == id {
				change.DeleteAssignment(a.Value.Host, id.Ref(), a.ModRevision)
			}
		}
	}
}

// assignmentMod is the revision of the assignment that a new one takes the place of, 0
// when there is none.
func assignmentMod(i *store.Instance, next kurabe.Assignment) int64 {
	for _, a := range i.Assignments {
		if a.Value.Host == next.Host && a.Value.Instance == next.Instance {
			return a.ModRevision
		}
	}
	return 0
}
