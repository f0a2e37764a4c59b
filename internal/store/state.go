package store

import (
	"maps"
	"slices"
	"strings"

	"kurabe"
)

// state is the decoded content of a View. It has no lock of its own.
type state struct {
	instances map[kurabe.InstanceID]*Instance
	// byName holds the name in force of every instance that has a spec.
	byName map[string]kurabe.InstanceID
	// owners holds every taken name, a reserved one too.
	owners map[string]Record[nameRecord]
	// sorted is Instances by name, nil when it must be made again.
	sorted []*Instance

	hosts           map[kurabe.HostID]Record[kurabe.HostReport]
	catalogs        map[catalogID]map[kurabe.HostID]*kurabe.Catalog
	parameterGroups map[string]Record[kurabe.ParameterGroup]
	subnetGroups    map[string]Record[kurabe.SubnetGroup]
	events          eventList
	// corrupt are the records that did not decode.
	corrupt map[string]*CorruptError
}

// catalogID names a catalog; hosts that report the same one are merged.
type catalogID struct {
	engine  kurabe.EngineName
	version string
}

// touch is what one event makes dirty.
type touch struct {
	all       bool
	instances []kurabe.InstanceID
}

func newState() *state {
	return &state{
		instances:       map[kurabe.InstanceID]*Instance{},
		byName:          map[string]kurabe.InstanceID{},
		owners:          map[string]Record[nameRecord]{},
		hosts:           map[kurabe.HostID]Record[kurabe.HostReport]{},
		catalogs:        map[catalogID]map[kurabe.HostID]*kurabe.Catalog{},
		parameterGroups: map[string]Record[kurabe.ParameterGroup]{},
		subnetGroups:    map[string]Record[kurabe.SubnetGroup]{},
		corrupt:         map[string]*CorruptError{},
	}
}

// put brings a written record in. One that does not decode leaves what was
// there before in place and is noted: an unreadable spec must never look like a
// deleted instance.
func (s *state) put(e Entry) touch {
	delete(s.corrupt, e.Key)
	p := parseKey(e.Key)
	t, err := s.putKind(p, e)
	if err != nil {
		s.corrupt[e.Key] = asCorrupt(e.Key, err)
		return touch{instances: p.instances()}
	}
	return t
}

func (s *state) putKind(p keyParts, e Entry) (touch, error) {
	switch p.kind {
	case KindInstanceSpec, KindInstanceStatus, KindAssignment, KindInstanceReport:
		return s.putInstance(p, e)
	case KindInstanceName:
		return s.putName(p.name, e)
	case KindHostReport:
		r, err := decode[kurabe.HostReport](e)
		if err != nil {
			return touch{}, err
		}
		s.hosts[p.host] = Record[kurabe.HostReport]{r, e.ModRevision}
		return touch{all: true}, nil
	case KindCatalog:
		c, err := decodePacked[kurabe.Catalog](e)
		if err != nil {
			return touch{}, err
		}
		id := catalogID{p.engine, p.version}
		if s.catalogs[id] == nil {
			s.catalogs[id] = map[kurabe.HostID]*kurabe.Catalog{}
		}
		s.catalogs[id][p.host] = &c
		return touch{all: true}, nil
	case KindParameterGroup:
		g, err := decode[kurabe.ParameterGroup](e)
		if err != nil {
			return touch{}, err
		}
		s.parameterGroups[p.name] = Record[kurabe.ParameterGroup]{g, e.ModRevision}
		return touch{instances: s.usersOf(p.name)}, nil
	case KindSubnetGroup:
		g, err := decode[kurabe.SubnetGroup](e)
		if err != nil {
			return touch{}, err
		}
		s.subnetGroups[p.name] = Record[kurabe.SubnetGroup]{g, e.ModRevision}
	case KindEvent:
		ev, err := decode[kurabe.Event](e)
		if err != nil {
			return touch{}, err
		}
		s.events.put(ev, p.name)
	}
	return touch{}, nil
}

// remove takes a deleted record out.
func (s *state) remove(key string) touch {
	delete(s.corrupt, key)
	p := parseKey(key)
	switch p.kind {
	case KindInstanceSpec, KindInstanceStatus, KindAssignment, KindInstanceReport:
		s.removeInstance(p)
		return touch{instances: []kurabe.InstanceID{p.instance}}
	case KindInstanceName:
		return s.removeName(p.name)
	case KindHostReport:
		delete(s.hosts, p.host)
		return touch{all: true}
	case KindCatalog:
		id := catalogID{p.engine, p.version}
		delete(s.catalogs[id], p.host)
		if len(s.catalogs[id]) == 0 {
			delete(s.catalogs, id)
		}
		return touch{all: true}
	case KindParameterGroup:
		delete(s.parameterGroups, p.name)
		return touch{instances: s.usersOf(p.name)}
	case KindSubnetGroup:
		delete(s.subnetGroups, p.name)
	case KindEvent:
		s.events.remove(p.name)
	}
	return touch{}
}

// usersOf lists the instances that use or wait for a parameter group.
func (s *state) usersOf(group string) []kurabe.InstanceID {
	var out []kurabe.InstanceID
	for id, i := range s.instances {
		if i.Spec != nil && i.Spec.ParameterGroup == group ||
			i.Status != nil && i.Status.ParameterGroup == group {
			out = append(out, id)
		}
	}
	return out
}

func (s *state) corruptSorted() []*CorruptError {
	return slices.SortedFunc(maps.Values(s.corrupt), func(a, b *CorruptError) int { return strings.Compare(a.Key, b.Key) })
}

// instances returns the instance that a key speaks of, if it names one.
func (p keyParts) instances() []kurabe.InstanceID {
	if p.instance == "" {
		return nil
	}
	return []kurabe.InstanceID{p.instance}
}
