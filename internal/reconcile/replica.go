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
	heir := kurabe.InstanceID("")
	if i.Group != nil {
		heir = i.Group.SwitchoverTo
	}
	if heir == "" {
		heir = asked(i)
	}
	if heir != "" {
		w.SwitchoverTarget = f.upstream(heir)
	}
}

// addSecurityGroups tells of the groups of an instance, and of the hosts whose servers reach its
// own. A group that is not there permits nothing.
func (f *fleet) addSecurityGroups(i *store.Instance, w *plan.World) {
	for _, id := range kurabe.GroupsOf(i.Spec.SecurityGroups) {
		g, ok := f.view.SecurityGroup(id)
		switch {
		case !ok && id == kurabe.DefaultSecurityGroup:
			g.Value = kurabe.OpenSecurityGroup()
		case !ok:
			g.Value = kurabe.SecurityGroup{ID: id}
		}
		w.SecurityGroups = append(w.SecurityGroups, g.Value)
	}
	for _, replica := range append(f.view.Replicas(i.ID), i) {
		for _, a := range replica.Assignments {
			w.RelatedHosts = append(w.RelatedHosts, a.Value.Host)
		}
	}
	if w.Source != nil && w.Source.Assignment != nil {
		w.RelatedHosts = append(w.RelatedHosts, w.Source.Assignment.Host)
	}
}

// asked is the replica that an instance is to yield to, by a wish that was not taken up.
func asked(i *store.Instance) kurabe.InstanceID {
	wish := i.Spec.Switchover
	if wish == nil || i.Status != nil && wish.Seq <= i.Status.SwitchSeq {
		return ""
	}
	return wish.To
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
	f.linked[id] = i
	up := &plan.Upstream{Status: i.Status, Asked: asked(i), Siblings: f.siblings(id)}
	if a, ok := i.AssignmentOf(i.Writer()); ok {
		up.Assignment = &a.Value
	}
	if r, ok := i.ReportOf(i.Writer()); ok {
		up.Report = &r
	}
	switch {
	case i.Group != nil:
		up.Epoch, up.Switch = i.Group.Epoch, i.Group.SwitchoverTo
	case up.Assignment != nil && up.Assignment.Role != nil: // a replica itself
		up.Epoch = up.Assignment.Role.Epoch
	}
	return up
}

// siblings are the statuses of the replicas of an instance, as far as they can be read.
func (f *fleet) siblings(id kurabe.InstanceID) map[kurabe.InstanceID]*kurabe.InstanceStatus {
	all := map[kurabe.InstanceID]*kurabe.InstanceStatus{}
	for _, i := range f.view.Replicas(id) {
		if i.Status != nil && len(i.Unreadable) == 0 {
			f.linked[i.ID] = i
			all[i.ID] = i.Status
		}
	}
	return all
}

// changeFollowers writes that others follow an instance from now on, over what its plan has
// read of them. Whose place it takes has no record of who writes it any more: if that one was
// written since, as by a source that writes again, nothing of all this is.
func changeFollowers(change *store.Change, linked map[kurabe.InstanceID]*store.Instance, r plan.Result) {
	for _, s := range r.Followers {
		i := linked[s.ID]
		change.PutStatus(s, i.StatusMod)
		if i.Group != nil {
			change.DeleteGroup(i.ID, i.GroupMod)
		}
	}
}
