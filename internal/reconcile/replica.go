package reconcile

import (
	"kurabe"
	"kurabe/internal/plan"
	"kurabe/internal/store"
)

// addReplication tells of the read replicas of an instance, and of what it follows itself.
func (f *fleet) addReplication(i *store.Instance, w *plan.World) {
	for _, replica := range f.view.Replicas(i.ID) {
		w.Replicas = append(w.Replicas, replica.ID)
	}
	if source := kurabe.Followed(*i.Spec, i.Status); source != "" {
		w.Source = f.upstream(source)
	}
}

// upstream is what is known of the source of a replica, nil of one with records that cannot
// be read: it is there, and what it is nobody can say.
func (f *fleet) upstream(id kurabe.InstanceID) *plan.Upstream {
	i, found := f.view.Any(id)
	switch {
	case found && len(i.Unreadable) > 0:
		return nil
	case !found || i.Spec == nil || i.Spec.Deleting != nil:
		return &plan.Upstream{Gone: true}
	}
	up := &plan.Upstream{}
	if a, ok := i.AssignmentOf(i.Writer()); ok {
		up.Assignment = &a.Value
	}
	if r, ok := i.ReportOf(i.Writer()); ok {
		up.Report = &r
	}
	switch {
	case i.Group != nil:
		up.Epoch = i.Group.Epoch
	case up.Assignment != nil && up.Assignment.Role != nil: // a replica itself
		up.Epoch = up.Assignment.Role.Epoch
	}
	return up
}
