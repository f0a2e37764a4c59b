package store

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"kurabe"
)

// JoinedHost returns a host that was let in.
func (v *View) JoinedHost(id kurabe.HostID) (Record[kurabe.JoinedHost], bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	r, ok := v.state.joined[id]
	return r, ok
}

// JoinedHosts returns the hosts that were let in, by id.
func (v *View) JoinedHosts() []Record[kurabe.JoinedHost] {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return slices.SortedFunc(maps.Values(v.state.joined), func(a, b Record[kurabe.JoinedHost]) int { return cmp.Compare(a.Value.ID, b.Value.ID) })
}

// JoinToken returns a token.
func (v *View) JoinToken(id string) (Record[kurabe.JoinToken], bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	r, ok := v.state.tokens[id]
	return r, ok
}

// JoinTokens returns the tokens, by id.
func (v *View) JoinTokens() []Record[kurabe.JoinToken] {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return slices.SortedFunc(maps.Values(v.state.tokens), func(a, b Record[kurabe.JoinToken]) int { return cmp.Compare(a.Value.ID, b.Value.ID) })
}

// PresenceMod is the revision of what is said of a host's presence, 0 when nothing is.
func (v *View) PresenceMod(id kurabe.HostID) int64 {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.state.presence[id].ModRevision
}

// Presence says whether the agent of a joined host is heard; false when nobody has said.
func (v *View) Presence(id kurabe.HostID) (kurabe.Presence, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	r, ok := v.state.presence[id]
	return r.Value, ok
}

// Assigned says what is assigned to a host: ids of servers and of snapshots, sorted.
func (v *View) Assigned(id kurabe.HostID) (servers []kurabe.InstanceID, snapshots []kurabe.SnapshotID) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	for _, i := range v.state.instances.all {
		for _, a := range i.Assignments {
			if a.Value.Host == id {
				servers = append(servers, a.Value.Instance)
			}
		}
	}
	for _, s := range v.state.snapshots.all {
		if _, ok := s.Assignment(id); ok {
			snapshots = append(snapshots, s.ID)
		}
	}
	slices.Sort(servers)
	slices.Sort(snapshots)
	return servers, snapshots
}

// Keeps says whether a host has a server or a snapshot of an instance, or had one when it
// told of the instance's log: what it has kept of its time may be needed after that.
func (v *View) Keeps(host kurabe.HostID, id kurabe.InstanceID) bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if _, told := v.state.logs[host][id]; told {
		return true
	}
	if i, ok := v.state.instances.all[id]; ok {
		for _, a := range i.Assignments {
			if a.Value.Host == host {
				return true
			}
		}
	}
	for snapshot := range v.state.taken[id] {
		if s, ok := v.state.snapshots.all[snapshot]; ok {
			if _, ok := s.Assignment(host); ok {
				return true
			}
		}
	}
	return false
}

// Closed says why nothing new is placed on a host, "" when it may be.
func (v *View) Closed(id kurabe.HostID) string {
	v.mu.RLock()
	defer v.mu.RUnlock()
	joined, beside := v.state.joined[id]
	if !beside {
		return "" // a server of the service runs on it
	}
	switch p, said := v.state.presence[id]; {
	case joined.Value.Gone:
		return "host " + string(id) + " is gone for good"
	case joined.Value.Drained:
		return "host " + string(id) + " is drained"
	case !said:
		return "host " + string(id) + " was not heard yet"
	case p.Value.Lost:
		return "host " + string(id) + " is not heard"
	}
	return ""
}

// Emptied says why what is on a host is to leave it, "" when it is not. One that was not heard yet
// only gets nothing new.
func (v *View) Emptied(id kurabe.HostID) string {
	v.mu.RLock()
	drained, gone := v.state.joined[id].Value.Drained, v.state.joined[id].Value.Gone
	v.mu.RUnlock()
	if drained || gone {
		return v.Closed(id)
	}
	return ""
}

// Gone says that a host never comes back.
func (v *View) Gone(id kurabe.HostID) bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.state.joined[id].Value.Gone
}

// LostSince says since when a host is not heard, zero when it is.
func (v *View) LostSince(id kurabe.HostID) time.Time {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if p, said := v.state.presence[id]; said && p.Value.Lost {
		return p.Value.Since
	}
	return time.Time{}
}

// Planner is the host whose server was elected planner last, "" when none is.
func (v *View) Planner() kurabe.HostID {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.state.planner
}

// Servers are the hosts that servers of the service run on, when there are several, by id;
// without those that are gone for good.
func (v *View) Servers() []Record[kurabe.JoinedHost] {
	return slices.DeleteFunc(v.JoinedHosts(), func(h Record[kurabe.JoinedHost]) bool { return h.Value.Server == nil || h.Value.Gone })
}
