package plan

import (
	"slices"

	"kurabe"
)

// readers are the addresses of the standbys of a cluster that clients may read at: what they
// show is not too old, also of one that has followed until a moment ago. What a host has said
// that is not heard now may be true no longer.
func (d *draft) readers() (at []string) {
	if !d.w.Spec.Cluster {
		return nil
	}
	for _, m := range d.standbys() {
		if d.readable(m.ID) {
			at = append(at, m.ListensAt)
		}
	}
	return at
}

func (d *draft) readable(id kurabe.InstanceID) bool {
	r, a := d.heardReport(id), d.assigned(id)
	return d.isLiveFollower(id) && a != nil && a.Role != nil && a.Role.ServesReads && r.Serving && !r.Role.ReadsStale
}

// tellServers fills in what users see of each server of a cluster.
func (d *draft) tellServers() {
	if !d.w.Spec.Cluster {
		return
	}
	before := d.status.Servers
	d.status.ReaderAddress, d.status.Servers = d.next.ReaderAddress, nil
	for _, m := range d.group.Members {
		if m.Leaving {
			continue
		}
		s := kurabe.ServerStatus{ID: m.ID, Host: m.Host, Zone: m.Zone, Address: m.ListensAt, Writer: m.ID == d.group.Primary, InSyncSet: d.group.InSyncSet(m.ID)}
		if n := slices.IndexFunc(before, func(o kurabe.ServerStatus) bool { return o.ID == m.ID }); n >= 0 {
			s.CreatedAt, s.EngineVersion = before[n].CreatedAt, before[n].EngineVersion
		}
		if r := d.heardReport(m.ID); r != nil && r.Running {
			s.EngineVersion = r.EngineVersion
		}
		s.Reading = !s.Writer && d.readable(m.ID)
		s.State = d.serverState(s)
		if s.State == kurabe.StateAvailable && s.CreatedAt.IsZero() {
			s.CreatedAt = d.w.Now
		}
		d.status.Servers = append(d.status.Servers, s)
	}
}

// serverState is the state of one server, in the words for a DB instance.
func (d *draft) serverState(s kurabe.ServerStatus) kurabe.State {
	r := d.heardReport(s.ID)
	serves := r != nil && r.Running && r.Serving && r.Role != nil && !r.Role.Unresponsive && (r.Role.Writing || r.Role.Following)
	switch {
	case d.silent(s.Host):
		return kurabe.StateUnreachable
	case d.next.Goal == kurabe.GoalStopped && r != nil && !r.Running:
		return kurabe.StateStopped
	case d.next.Goal == kurabe.GoalStopped:
		return kurabe.StateStopping
	case d.fullStandbys[s.ID]:
		return kurabe.StateStorageFull
	case serves:
		return kurabe.StateAvailable
	case r != nil && r.Failure != nil && d.hasGivenUp(r) && r.Failure.Kind == kurabe.FailureParameters:
		return kurabe.StateIncompatibleParameters
	case s.CreatedAt.IsZero():
		return kurabe.StateCreating
	}
	return kurabe.StateRebooting
}
