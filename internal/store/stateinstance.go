package store

import (
	"errors"
	"fmt"
	"slices"

	"kurabe"
)

// owner is the instance that a record belongs to: assignments and reports are each of one
// server of it.
func (p keyParts) owner() kurabe.InstanceID {
	if p.kind == KindAssignment || p.kind == KindInstanceReport {
		return p.instance.Owner()
	}
	return p.instance
}

// decides says whether the plan of an instance without this record would be another one
// than with it: taken for absent, it could make a second writer. A report is told again.
func (p keyParts) decides() bool {
	switch p.kind {
	case KindInstanceSpec, KindInstanceStatus, KindGroup, KindAssignment:
		return true
	}
	return false
}

// putInstance brings in one of the records that an Instance is made of.
func (s *state) putInstance(p keyParts, e Entry) (touch, error) {
	next := s.instances.copyOf(p.owner())
	if err := next.put(p, e); err != nil {
		return touch{}, err
	}
	next.Unreadable = withoutKey(next.Unreadable, e.Key)
	return s.swapInstance(next), nil
}

// put brings a record into an instance that nobody else has yet.
func (i *Instance) put(p keyParts, e Entry) error {
	switch p.kind {
	case KindInstanceSpec:
		spec, err := decode[kurabe.InstanceSpec](e)
		if err == nil && spec.ID != p.instance {
			err = fmt.Errorf("it speaks of instance %q", spec.ID)
		}
		if err != nil {
			return err
		}
		i.Spec, i.SpecMod = &spec, e.ModRevision
	case KindInstanceStatus:
		status, err := decode[kurabe.InstanceStatus](e)
		if err != nil {
			return err
		}
		i.Status, i.StatusMod = &status, e.ModRevision
	case KindGroup:
		group, err := decodeGroup(p, e)
		if err != nil {
			return err
		}
		i.Group, i.GroupMod = &group, e.ModRevision
	case KindAssignment:
		a, err := decode[kurabe.Assignment](e)
		if err == nil {
			err = p.sameServer(a.Host, a.Instance)
		}
		if err != nil {
			return err
		}
		i.Assignments = withRecord(i.Assignments, Record[kurabe.Assignment]{a, e.ModRevision}, assignedTo)
	case KindInstanceReport:
		r, err := decode[kurabe.InstanceReport](e)
		if err == nil {
			err = p.sameServer(r.Host, r.Instance)
		}
		if err != nil {
			return err
		}
		i.Reports = withRecord(i.Reports, Record[kurabe.InstanceReport]{r, e.ModRevision}, reportedBy)
	case KindTask:
		o, err := decode[kurabe.Task](e)
		if err != nil {
			return err
		}
		i.Tasks = withRecord(i.Tasks, Record[kurabe.Task]{o, e.ModRevision}, orderedOf)
	case KindTaskReport:
		r, err := decode[kurabe.TaskReport](e)
		if err != nil {
			return err
		}
		i.TaskReports = withRecord(i.TaskReports, Record[kurabe.TaskReport]{r, e.ModRevision}, doneBy)
	}
	return nil
}

// decodeGroup reads the record of who may write. One that contradicts itself is no better
// than one that does not decode.
func decodeGroup(p keyParts, e Entry) (kurabe.Group, error) {
	g, err := decode[kurabe.Group](e)
	if err == nil && g.Instance != p.instance {
		err = fmt.Errorf("it speaks of instance %q", g.Instance)
	}
	if err == nil {
		err = checkGroup(g)
	}
	return g, err
}

// sameServer says why a record does not belong under its key.
func (p keyParts) sameServer(host kurabe.HostID, id kurabe.InstanceID) error {
	switch {
	case id != p.instance || host != p.host:
		return fmt.Errorf("it speaks of instance %q on host %q", id, host)
	case id.Number() == 0:
		return errors.New("its id is that of no server of an instance")
	}
	return nil
}

func (s *state) removeInstance(p keyParts, key string) touch {
	next := s.instances.copyOf(p.owner())
	switch p.kind {
	case KindInstanceSpec:
		next.Spec, next.SpecMod = nil, 0
	case KindInstanceStatus:
		next.Status, next.StatusMod = nil, 0
	case KindGroup:
		next.Group, next.GroupMod = nil, 0
	case KindAssignment:
		next.Assignments = withoutRecord(next.Assignments, placeOf{host: p.host, member: p.instance}, assignedTo)
	case KindInstanceReport:
		next.Reports = withoutRecord(next.Reports, placeOf{host: p.host, member: p.instance}, reportedBy)
	case KindTask:
		next.Tasks = withoutRecord(next.Tasks, placeOf{host: p.host, task: p.task}, orderedOf)
	case KindTaskReport:
		next.TaskReports = withoutRecord(next.TaskReports, placeOf{host: p.host, task: p.task}, doneBy)
	}
	next.Unreadable = withoutKey(next.Unreadable, key)
	return s.swapInstance(next)
}

// putUnreadable notes a record that is there and cannot be read. What was read of it
// before stays.
func (s *state) putUnreadable(p keyParts, key string) touch {
	next := s.instances.copyOf(p.owner())
	next.Unreadable = append(withoutKey(next.Unreadable, key), key)
	slices.Sort(next.Unreadable)
	return s.swapInstance(next)
}

// withoutKey returns a new list: the old one is shared.
func withoutKey(keys []string, key string) []string {
	var out []string
	for _, k := range keys {
		if k != key {
			out = append(out, k)
		}
	}
	return out
}

// swapInstance puts a new value in place. What was or is linked with it is dirty
// too: snapshots of it, those that it was restored from, its read replicas, and those that
// it is one of.
func (s *state) swapInstance(next *Instance) touch {
	var before []kurabe.SnapshotID
	var followed []kurabe.InstanceID
	if old := s.instances.all[next.ID]; old != nil {
		before, followed = old.origins(), old.sources()
	}
	after, follows := next.origins(), next.sources()
	s.instances.swap(next)
	s.restored.move(next.ID, before, after)
	s.replicas.move(next.ID, followed, follows)
	t := touch{instances: append(append([]kurabe.InstanceID{next.ID}, followed...), follows...)}
	for id := range s.replicas[next.ID] {
		t.instances = append(t.instances, id)
	}
	t.snapshots = append(append(t.snapshots, before...), after...)
	for id := range s.taken[next.ID] {
		t.snapshots = append(t.snapshots, id)
	}
	return t
}
