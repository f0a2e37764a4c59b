package store

import "kurabe"

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
