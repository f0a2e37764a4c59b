package store

import "kurabe"

// Snapshot returns a snapshot that has a spec.
func (v *View) Snapshot(id kurabe.SnapshotID) (*Snapshot, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	s := v.state.snapshots.all[id]
	return s, s != nil && s.Spec != nil
}

// SnapshotByName returns the snapshot with that name, as kurabe.NameKey makes it.
func (v *View) SnapshotByName(name string) (*Snapshot, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.state.snapshots.named(name)
}

// Snapshots returns every snapshot that has a spec, sorted by name.
func (v *View) Snapshots() []*Snapshot {
	v.mu.RLock()
	list := v.state.snapshots.sorted
	v.mu.RUnlock()
	if list != nil {
		return list
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.state.snapshots.list()
}

// AnySnapshot returns what is stored of a snapshot even when its spec is gone: a
// report may outlive it.
func (v *View) AnySnapshot(id kurabe.SnapshotID) (*Snapshot, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	s := v.state.snapshots.all[id]
	return s, s != nil
}

// SnapshotLeftovers returns the snapshots that have records but no spec, by id.
func (v *View) SnapshotLeftovers() []*Snapshot {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.state.snapshots.leftovers()
}

// SnapshotsOf returns the snapshots that show an instance, copies too, by id.
func (v *View) SnapshotsOf(id kurabe.InstanceID) []*Snapshot {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.state.snapshots.pick(v.state.taken[id])
}

// CopiesOf returns the snapshots that are copies of a snapshot, by id.
func (v *View) CopiesOf(id kurabe.SnapshotID) []*Snapshot {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.state.snapshots.pick(v.state.copies[id])
}

// RestoredFrom returns the instances whose data comes from a snapshot, by id; one
// may have lost its spec.
func (v *View) RestoredFrom(id kurabe.SnapshotID) []*Instance {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.state.instances.pick(v.state.restored[id])
}
