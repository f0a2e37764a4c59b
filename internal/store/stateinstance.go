package store

import (
	"fmt"

	"kurabe"
)

// putInstance brings in one of the records that an Instance is made of.
func (s *state) putInstance(p keyParts, e Entry) (touch, error) {
	next := s.instances.copyOf(p.instance)
	switch p.kind {
	case KindInstanceSpec:
		spec, err := decode[kurabe.InstanceSpec](e)
		if err == nil && spec.ID != p.instance {
			err = fmt.Errorf("it speaks of instance %q", spec.ID)
		}
		if err != nil {
			return touch{}, err
		}
		next.Spec, next.SpecMod = &spec, e.ModRevision
	case KindInstanceStatus:
		status, err := decode[kurabe.InstanceStatus](e)
		if err != nil {
			return touch{}, err
		}
		next.Status, next.StatusMod = &status, e.ModRevision
	case KindAssignment:
		a, err := decode[kurabe.Assignment](e)
		if err == nil && (a.Instance != p.instance || a.Host != p.host) {
			err = fmt.Errorf("it speaks of instance %q on host %q", a.Instance, a.Host)
		}
		if err != nil {
			return touch{}, err
		}
		next.Assignments = withRecord(next.Assignments, Record[kurabe.Assignment]{a, e.ModRevision}, assignedTo)
	case KindInstanceReport:
		r, err := decode[kurabe.InstanceReport](e)
		if err == nil && (r.Instance != p.instance || r.Host != p.host) {
			err = fmt.Errorf("it speaks of instance %q on host %q", r.Instance, r.Host)
		}
		if err != nil {
			return touch{}, err
		}
		next.Reports = withRecord(next.Reports, Record[kurabe.InstanceReport]{r, e.ModRevision}, reportedBy)
	}
	return s.swapInstance(next), nil
}

func (s *state) removeInstance(p keyParts) touch {
	next := s.instances.copyOf(p.instance)
	switch p.kind {
	case KindInstanceSpec:
		next.Spec, next.SpecMod = nil, 0
	case KindInstanceStatus:
		next.Status, next.StatusMod = nil, 0
	case KindAssignment:
		next.Assignments = withoutRecord(next.Assignments, p.host, assignedTo)
	case KindInstanceReport:
		next.Reports = withoutRecord(next.Reports, p.host, reportedBy)
	}
	return s.swapInstance(next)
}

// swapInstance puts a new value in place. What was or is linked with it is dirty
// too: snapshots of it, and those that it was restored from.
func (s *state) swapInstance(next *Instance) touch {
	var before []kurabe.SnapshotID
	if old := s.instances.all[next.ID]; old != nil {
		before = old.origins()
	}
	after := next.origins()
	s.instances.swap(next)
	s.restored.move(next.ID, before, after)
	t := touch{instances: []kurabe.InstanceID{next.ID}}
	t.snapshots = append(append(t.snapshots, before...), after...)
	for id := range s.taken[next.ID] {
		t.snapshots = append(t.snapshots, id)
	}
	return t
}
