package store

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
)

// unit is something that has a spec, a status, a name, and assignments and
// reports of hosts: *Instance and *Snapshot.
type unit[ID ~string, T any] interface {
	*T
	Key() string // the name in force, unique among all; "" without a spec
	identity() *ID
	names() *map[string]int64
	hasSpec() bool
	empty() bool // no record of it is left
}

// shelf holds the units of one kind. A unit in it is never changed: each write
// makes a new one, because readers hold the old one without a lock.
type shelf[ID ~string, T any, U unit[ID, T]] struct {
	all map[ID]U
	// byName holds the name in force of every unit that has a spec.
	byName map[string]ID
	// owners holds every taken name, a reserved one too.
	owners map[string]Record[nameRecord[ID]]
	// sorted are those with a spec by name, nil when it must be made again.
	sorted []U
}

func newShelf[ID ~string, T any, U unit[ID, T]]() shelf[ID, T, U] {
	return shelf[ID, T, U]{all: map[ID]U{}, byName: map[string]ID{}, owners: map[string]Record[nameRecord[ID]]{}}
}

// copyOf returns a copy to be changed and swapped in, an empty one at first.
func (s *shelf[ID, T, U]) copyOf(id ID) U {
	next := new(T)
	if old := s.all[id]; old != nil {
		*next = *old
	}
	*U(next).identity() = id
	return next
}

// swap puts a new value of a unit in place and keeps the index of names and the
// sorted list true.
func (s *shelf[ID, T, U]) swap(next U) {
	id := *next.identity()
	old := s.all[id]
	oldName := ""
	if old != nil {
		oldName = old.Key()
	}
	if oldName != "" && s.byName[oldName] == id {
		delete(s.byName, oldName)
	}
	if next.empty() {
		delete(s.all, id)
	} else {
		s.all[id] = next
	}
	name := next.Key()
	if name != "" {
		s.byName[name] = id
	}
	// The common write, a new status or report, changes one place of the list.
	if s.sorted != nil && name == oldName && name != "" {
		if at, ok := s.find(name, id); ok {
			s.sorted = slices.Clone(s.sorted)
			s.sorted[at] = next
			return
		}
	}
	s.sorted = nil
}

// putName brings in a taken name and returns whose it was and is.
func (s *shelf[ID, T, U]) putName(name string, e Entry) ([]ID, error) {
	r, err := decode[nameRecord[ID]](e)
	if err == nil && r.ID == "" {
		err = errors.New("it names no host")
	}
	if err != nil {
		return nil, err
	}
	owners := s.removeName(name)
	s.owners[name] = Record[nameRecord[ID]]{r, e.ModRevision}
	next := s.copyOf(r.ID)
	names := maps.Clone(*next.names())
	if names == nil {
		names = map[string]int64{}
	}
	names[name] = e.ModRevision
	*next.names() = names
	s.swap(next)
	return append(owners, r.ID), nil
}

// removeName takes a name out and returns whose it was.
func (s *shelf[ID, T, U]) removeName(name string) []ID {
	owner, ok := s.owners[name]
	if !ok {
		return nil
	}
	delete(s.owners, name)
	next := s.copyOf(owner.Value.ID)
	names := maps.Clone(*next.names())
	delete(names, name)
	if len(names) == 0 {
		names = nil
	}
	*next.names() = names
	s.swap(next)
	return []ID{owner.Value.ID}
}

// named returns the unit whose name in force is name.
func (s *shelf[ID, T, U]) named(name string) (U, bool) {
	id, ok := s.byName[name]
	if !ok {
		return nil, false
	}
	return s.all[id], true
}

// list returns every unit that has a spec, by name.
func (s *shelf[ID, T, U]) list() []U {
	if s.sorted == nil {
		s.sorted = make([]U, 0, len(s.all))
		for _, u := range s.all {
			if u.hasSpec() {
				s.sorted = append(s.sorted, u)
			}
		}
		slices.SortFunc(s.sorted, func(a, b U) int { return s.compare(a, b.Key(), *b.identity()) })
	}
	return s.sorted
}

// leftovers returns the units that have records but no spec, by id.
func (s *shelf[ID, T, U]) leftovers() []U {
	var out []U
	for _, u := range s.all {
		if !u.hasSpec() {
			out = append(out, u)
		}
	}
	slices.SortFunc(out, func(a, b U) int { return cmp.Compare(*a.identity(), *b.identity()) })
	return out
}

// pick returns the units with these ids that have a record, by id.
func (s *shelf[ID, T, U]) pick(ids map[ID]struct{}) []U {
	var out []U
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		if u := s.all[id]; u != nil {
			out = append(out, u)
		}
	}
	return out
}

func (s *shelf[ID, T, U]) find(name string, id ID) (int, bool) {
	return slices.BinarySearchFunc(s.sorted, name, func(u U, name string) int { return s.compare(u, name, id) })
}

func (*shelf[ID, T, U]) compare(u U, name string, id ID) int {
	return cmp.Or(strings.Compare(u.Key(), name), cmp.Compare(*u.identity(), id))
}

// links remembers which B belong to an A, so that nobody has to look through all
// of them.
type links[A, B comparable] map[A]map[B]struct{}

// move replaces what b belonged to by what it belongs to now.
func (l links[A, B]) move(b B, from, to []A) {
	for _, a := range from {
		delete(l[a], b)
		if len(l[a]) == 0 {
			delete(l, a)
		}
	}
	for _, a := range to {
		if l[a] == nil {
			l[a] = map[B]struct{}{}
		}
		l[a][b] = struct{}{}
	}
}
