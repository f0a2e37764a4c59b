package store

import (
	"kurabe"
)

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

// putSnapshot brings in one of the records that a Snapshot is made of.
func (s *state) putSnapshot(p keyParts, e Entry) (touch, error) {
	next := s.snapshots.copyOf(p.snapshot)
	var err error
	switch p.kind {
	case KindSnapshotSpec:
		err = putOne(&next.Spec, &next.SpecMod, e, func(s kurabe.SnapshotSpec) error { return speaksOf(s.ID, p.snapshot) })
	case KindSnapshotStatus:
		err = putOne(&next.Status, &next.StatusMod, e, nil)
	case KindSnapshotAssignment:
		err = putWord(&next.Assignments, e, p, snapshotAssignedTo)
	case KindSnapshotReport:
		err = putWord(&next.Reports, e, p, snapshotReportedBy)
	}
	if err != nil {
		return touch{}, err
	}
	return s.swapSnapshot(next), nil
}

func (s *state) removeSnapshot(p keyParts) touch {
	next := s.snapshots.copyOf(p.snapshot)
	switch p.kind {
	case KindSnapshotSpec:
		next.Spec, next.SpecMod = nil, 0
	case KindSnapshotStatus:
		next.Status, next.StatusMod = nil, 0
	case KindSnapshotAssignment:
		next.Assignments = withoutRecord(next.Assignments, placeOf{host: p.host}, snapshotAssignedTo)
	case KindSnapshotReport:
		next.Reports = withoutRecord(next.Reports, placeOf{host: p.host}, snapshotReportedBy)
	}
	return s.swapSnapshot(next)
}

// swapSnapshot puts a new value in place. What was or is linked with it is dirty
// too: its instance, those restored from it, what it is a copy of, and its copies.
func (s *state) swapSnapshot(next *Snapshot) touch {
	old := s.snapshots.all[next.ID]
	if old == nil {
		old = &Snapshot{}
	}
	s.snapshots.swap(next)
	s.taken.move(next.ID, old.instances(), next.instances())
	s.copies.move(next.ID, old.originals(), next.originals())
	t := touch{snapshots: []kurabe.SnapshotID{next.ID}}
	for _, v := range []*Snapshot{old, next} {
		t.instances = append(t.instances, v.instances()...)
		t.snapshots = append(t.snapshots, v.originals()...)
	}
	for id := range s.restored[next.ID] {
		t.instances = append(t.instances, id)
	}
	for id := range s.copies[next.ID] {
		t.snapshots = append(t.snapshots, id)
	}
	return t
}
