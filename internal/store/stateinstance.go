package store

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"kurabe"
)

// An *Instance in a state is never changed: each write makes a new one, because
// readers hold the old one without a lock.

// putInstance brings in one of the records that an Instance is made of.
func (s *state) putInstance(p keyParts, e Entry) (touch, error) {
	next := s.copyOf(p.instance)
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
	s.swap(next)
	return touch{instances: []kurabe.InstanceID{p.instance}}, nil
}

func (s *state) removeInstance(p keyParts) {
	next := s.copyOf(p.instance)
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
	s.swap(next)
}

// putName brings in a taken name.
func (s *state) putName(name string, e Entry) (touch, error) {
	r, err := decode[nameRecord](e)
	if err == nil && r.ID == "" {
		err = errors.New("it names no instance")
	}
	if err != nil {
		return touch{}, err
	}
	t := s.removeName(name)
	s.owners[name] = Record[nameRecord]{r, e.ModRevision}
	next := s.copyOf(r.ID)
	next.Names = maps.Clone(next.Names)
	if next.Names == nil {
		next.Names = map[string]int64{}
	}
	next.Names[name] = e.ModRevision
	s.swap(next)
	t.instances = append(t.instances, r.ID)
	return t, nil
}

func (s *state) removeName(name string) touch {
	owner, ok := s.owners[name]
	if !ok {
		return touch{}
	}
	delete(s.owners, name)
	next := s.copyOf(owner.Value.ID)
	next.Names = maps.Clone(next.Names)
	delete(next.Names, name)
	if len(next.Names) == 0 {
		next.Names = nil
	}
	s.swap(next)
	return touch{instances: []kurabe.InstanceID{owner.Value.ID}}
}

func (s *state) copyOf(id kurabe.InstanceID) *Instance {
	if old := s.instances[id]; old != nil {
		next := *old
		return &next
	}
	return &Instance{ID: id}
}

// swap puts a new value of an instance in place and keeps the index of names
// and the sorted list true.
func (s *state) swap(next *Instance) {
	old := s.instances[next.ID]
	oldName := ""
	if old != nil {
		oldName = old.Name()
	}
	if oldName != "" && s.byName[oldName] == next.ID {
		delete(s.byName, oldName)
	}
	if next.empty() {
		delete(s.instances, next.ID)
	} else {
		s.instances[next.ID] = next
	}
	name := next.Name()
	if name != "" {
		s.byName[name] = next.ID
	}
	// The common write, a new status or report, changes one place of the list.
	if s.sorted != nil && name == oldName && name != "" {
		if at, ok := s.find(name, next.ID); ok {
			s.sorted = slices.Clone(s.sorted)
			s.sorted[at] = next
			return
		}
	}
	s.sorted = nil
}

// list returns every instance that has a spec, by name.
func (s *state) list() []*Instance {
	if s.sorted == nil {
		s.sorted = make([]*Instance, 0, len(s.instances))
		for _, i := range s.instances {
			if i.Spec != nil {
				s.sorted = append(s.sorted, i)
			}
		}
		slices.SortFunc(s.sorted, func(a, b *Instance) int { return byNameAndID(a, b.Name(), b.ID) })
	}
	return s.sorted
}

func (s *state) find(name string, id kurabe.InstanceID) (int, bool) {
	return slices.BinarySearchFunc(s.sorted, name, func(i *Instance, name string) int { return byNameAndID(i, name, id) })
}

func byNameAndID(i *Instance, name string, id kurabe.InstanceID) int {
	return cmp.Or(strings.Compare(i.Name(), name), cmp.Compare(i.ID, id))
}

func assignedTo(a kurabe.Assignment) kurabe.HostID     { return a.Host }
func reportedBy(r kurabe.InstanceReport) kurabe.HostID { return r.Host }

// withRecord returns a new list, sorted by host, with r in its host's place.
func withRecord[T any](list []Record[T], r Record[T], host func(T) kurabe.HostID) []Record[T] {
	out := append(withoutRecord(list, host(r.Value), host), r)
	slices.SortFunc(out, func(a, b Record[T]) int { return cmp.Compare(host(a.Value), host(b.Value)) })
	return out
}

// withoutRecord returns a new list without that host's record.
func withoutRecord[T any](list []Record[T], h kurabe.HostID, host func(T) kurabe.HostID) []Record[T] {
	var out []Record[T]
	for _, r := range list {
		if host(r.Value) != h {
			out = append(out, r)
		}
	}
	return out
}

// asCorrupt makes a CorruptError of what went wrong with a key.
func asCorrupt(key string, err error) *CorruptError {
	if c, ok := errors.AsType[*CorruptError](err); ok {
		return c
	}
	return &CorruptError{Key: key, Err: err}
}
