package store

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"kurabe"
)

// Instance returns an instance that has a spec.
func (v *View) Instance(id kurabe.InstanceID) (*Instance, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	i := v.state.instances.all[id]
	return i, i != nil && i.Spec != nil
}

// InstanceByName returns the instance whose name in force is name, as kurabe.NameKey makes
// it.
func (v *View) InstanceByName(name string) (*Instance, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.state.instances.named(name)
}

// NameOwner returns the instance that a name belongs to, even when the name is
// only reserved for a rename that waits.
func (v *View) NameOwner(name string) (kurabe.InstanceID, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	r, ok := v.state.instances.owners[name]
	return r.Value.ID, ok
}

// Instances returns every instance that has a spec, sorted by name.
func (v *View) Instances() []*Instance {
	v.mu.RLock()
	list := v.state.instances.sorted
	v.mu.RUnlock()
	if list != nil {
		return list
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.state.instances.list()
}

// Replicas returns the instances that are read replicas of one now, and are not about to be
// deleted, sorted by id.
func (v *View) Replicas(id kurabe.InstanceID) []*Instance {
	v.mu.RLock()
	defer v.mu.RUnlock()
	var list []*Instance
	for replica := range v.state.replicas[id] {
		i := v.state.instances.all[replica]
		if i != nil && i.Spec != nil && i.Spec.Deleting == nil && kurabe.Followed(*i.Spec, i.Status) == id {
			list = append(list, i)
		}
	}
	slices.SortFunc(list, func(a, b *Instance) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// LogOf returns what the hosts keep of the log of an instance, which may be gone. Its writer
// may have been on several: each has the stretches of its own time, or of the others too where
// they share a repository. What is said of now is said by the one that reaches furthest.
func (v *View) LogOf(id kurabe.InstanceID) (kurabe.InstanceLog, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	var all []kurabe.InstanceLog
	for host, logs := range v.state.logs {
		if l, ok := logs[id]; ok {
			all = append(all, l.ToldBy(host))
		}
	}
	return kurabe.JoinLogs(all)
}

// Any returns what is stored of an instance even when its spec is gone: an
// assignment or a report may outlive it.
func (v *View) Any(id kurabe.InstanceID) (*Instance, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	i := v.state.instances.all[id]
	return i, i != nil
}

// Leftovers returns the instances that have records but no spec, by id.
func (v *View) Leftovers() []*Instance {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.state.instances.leftovers()
}

// Host returns what a host reports of itself.
func (v *View) Host(id kurabe.HostID) (kurabe.HostReport, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	r, ok := v.state.hosts[id]
	return r.Value, ok
}

// Hosts returns every host's report, by id.
func (v *View) Hosts() []kurabe.HostReport {
	v.mu.RLock()
	defer v.mu.RUnlock()
	out := make([]kurabe.HostReport, 0, len(v.state.hosts))
	for _, r := range v.state.hosts {
		out = append(out, r.Value)
	}
	slices.SortFunc(out, func(a, b kurabe.HostReport) int { return cmp.Compare(a.Host, b.Host) })
	return out
}

// Catalog returns the parameters of an engine version, as the hosts have them that are believed;
// nil when none has it.
func (v *View) Catalog(engine kurabe.EngineName, version string) *kurabe.Catalog {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.state.catalog(catalogID{engine, version})
}

// Catalogs returns one catalog per engine and version, by engine and version
// text.
func (v *View) Catalogs() []*kurabe.Catalog {
	v.mu.RLock()
	defer v.mu.RUnlock()
	out := make([]*kurabe.Catalog, 0, len(v.state.catalogs))
	for id := range v.state.catalogs {
		out = append(out, v.state.catalog(id))
	}
	slices.SortFunc(out, func(a, b *kurabe.Catalog) int {
		return cmp.Or(cmp.Compare(a.Engine, b.Engine), cmp.Compare(a.Version, b.Version))
	})
	return out
}

// ParameterGroup returns a stored parameter group by its key (kurabe.NameKey); the default
// groups are not stored.
func (v *View) ParameterGroup(name string) (Record[kurabe.ParameterGroup], bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	r, ok := v.state.parameterGroups[name]
	return r, ok
}

// ParameterGroups returns every stored parameter group, by name.
func (v *View) ParameterGroups() []Record[kurabe.ParameterGroup] {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return sortedByName(v.state.parameterGroups)
}

// SubnetGroup returns a stored subnet group.
func (v *View) SubnetGroup(name string) (Record[kurabe.SubnetGroup], bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	r, ok := v.state.subnetGroups[name]
	return r, ok
}

// SubnetGroups returns every stored subnet group, by name.
func (v *View) SubnetGroups() []Record[kurabe.SubnetGroup] {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return sortedByName(v.state.subnetGroups)
}

func sortedByName[T any](m map[string]Record[T]) []Record[T] {
	out := make([]Record[T], 0, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[name])
	}
	return out
}

// Events returns the events with from <= At < to, newest last.
func (v *View) Events(from, to time.Time) []kurabe.Event {
	v.mu.RLock()
	defer v.mu.RUnlock()
	list := v.state.events.between(from, to)
	out := make([]kurabe.Event, len(list))
	for n, e := range list {
		out[n] = e.Event
	}
	return out
}

// expired returns the keys, up to limit, of the events and the entries of alarms' history that
// are not kept any longer.
func (v *View) expired(now time.Time, limit int) []string {
	v.mu.RLock()
	defer v.mu.RUnlock()
	keys := v.state.events.expired(now.Add(-EventAgeMax), EventCountMax, limit, eventKey)
	return append(keys, v.state.alarmHistory.expired(now.Add(-alarmEntryAgeMax), alarmEntryCountMax, limit-len(keys), func(seq string) string { return alarmHistory + seq })...)
}
