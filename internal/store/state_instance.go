package store

import (
	"cmp"
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
		return putOne(&i.Spec, &i.SpecMod, e, func(s kurabe.InstanceSpec) error { return speaksOf(s.ID, p.instance) })
	case KindInstanceStatus:
		return putOne(&i.Status, &i.StatusMod, e, nil)
	case KindGroup:
		return putOne(&i.Group, &i.GroupMod, e, func(g kurabe.Group) error { return cmp.Or(speaksOf(g.Instance, p.instance), checkGroup(g)) })
	case KindAssignment:
		return putWord(&i.Assignments, e, p, assignedTo)
	case KindInstanceReport:
		return putWord(&i.Reports, e, p, reportedBy)
	case KindTask:
		return putWord(&i.Tasks, e, p, orderedOf)
	}
	return putWord(&i.TaskReports, e, p, doneBy)
}

// putOne brings in a record of which a thing has one, unless it contradicts itself: that is no
// better than one that does not decode.
func putOne[T any](to **T, mod *int64, e Entry, check func(T) error) error {
	v, err := decode[T](e)
	if err == nil && check != nil {
		err = check(v)
	}
	if err == nil {
		*to, *mod = &v, e.ModRevision
	}
	return err
}

// putWord brings in a word of a host, of which a thing may have many.
func putWord[W kurabe.Word](to *[]Record[W], e Entry, p keyParts, place func(W) placeOf) error {
	w, err := decode[W](e)
	if err == nil {
		err = p.same(w.Envelope())
	}
	if err == nil {
		*to = withRecord(*to, Record[W]{w, e.ModRevision}, place)
	}
	return err
}

func speaksOf[ID ~string](it, of ID) error {
	if it == of {
		return nil
	}
	return fmt.Errorf("it belongs to %q", it)
}

// same says why a word does not belong under its key.
func (p keyParts) same(e kurabe.Envelope) error {
	server := p.kind == KindAssignment || p.kind == KindInstanceReport
	switch {
	case e.Host != p.host || e.ID != cmp.Or(string(p.instance), string(p.snapshot), string(p.proxy)):
		return fmt.Errorf("it belongs to %q on host %q", e.ID, e.Host)
	case server && p.instance.Number() == 0:
		return errors.New("its id belongs to no server of an instance")
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
