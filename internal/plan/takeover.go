package plan

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"kurabe"
)

// end is where the log of a source has ended that has yielded to a replica, 0 of any other. It
// stays so for as long as the record of who writes the source is the one that was read.
func (up *Upstream) end(to kurabe.InstanceID) int64 {
	if up == nil || up.Switch != to || up.Assignment == nil || up.Report == nil {
		return 0
	}
	a, r := up.Assignment, up.Report
	yielded := a.Role != nil && a.Role.Duty == kurabe.DutyStepDown && r.Generation == a.Generation && r.Done && !r.Running && r.Role != nil && r.Role.SteppedDown
	if !yielded {
		return 0
	}
	return r.Role.Position
}

// switching says whether the replica is to take the place of its source.
func (d *draft) switching() bool {
	up := d.w.Source
	return d.follows() && up != nil && (up.Switch == d.w.Spec.ID || up.Asked == d.w.Spec.ID)
}

// hasAll says whether a replica has all that its source had, which has stopped for it.
func (d *draft) hasAll() bool {
	end, a, r := d.w.Source.end(d.w.Spec.ID), d.w.Assignment, d.w.Report
	return end > 0 && d.w.Source.Status != nil && a != nil && a.Goal == kurabe.GoalRunning && a.Role != nil && a.Role.SourceEnd == end &&
		r != nil && r.Generation == a.Generation && r.Running && r.Role != nil && r.Role.HasSourceEnd && !d.silent(a.Host)
}

// takeOver makes a replica the source, and its source a replica, at once: the same
// transaction takes away the record by which the other one would write again.
func (d *draft) takeOver() {
	id, up := d.w.Spec.ID, d.w.Source
	from := d.status.Source
	d.because(fmt.Sprintf("it has all that %s had, which has stopped in order: it is the source from here on", from))
	d.lead()
	followers := slices.Concat(d.w.Replicas, []kurabe.InstanceID{from})
	d.result.Followers = append(d.result.Followers, demoted(*up.Status, id))
	for _, sibling := range slices.Sorted(maps.Keys(up.Siblings)) {
		if sibling == id {
			continue
		}
		s := *up.Siblings[sibling]
		s.Source = id
		d.result.Followers = append(d.result.Followers, s)
		followers = append(followers, sibling)
	}
	slices.Sort(followers)
	d.w.Replicas = followers
	d.event("KURABE-EVENT-0030", "Switchover completed: the read replica has taken the place of its source, which follows it from here on", "read replica", "notification")
}

// demoted is the status of a source that was just taken the place of.
func demoted(s kurabe.InstanceStatus, by kurabe.InstanceID) kurabe.InstanceStatus {
	s.PendingParameters = slices.Clone(s.PendingParameters)
	s.Source, s.Epoch, s.Promoting = by, 0, false
	s.Replication, s.ReplicationReason, s.ReplicationBrokenSince, s.ReplicationCheckedAt = "", "", time.Time{}, time.Time{}
	s.SwitchBy = time.Time{}
	s.Action, s.State = kurabe.StateModifying, kurabe.StateModifying
	return s
}

// wasSource says whether a replica was a source until just now, and is still down as one.
func (d *draft) wasSource() bool {
	a := d.w.Assignment
	return a != nil && a.Role != nil && a.Role.Duty != kurabe.DutyFollow
}
