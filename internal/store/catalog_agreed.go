package store

import (
	"maps"
	"slices"
	"sync"

	"kurabe"
)

// What hosts report of an engine version decides what users may set on all hosts that have it.
// A host runs on a machine of its own, which may be in other hands: one that reports a parameter
// as free, with its value a path or a program of its choice, would open it everywhere. So the
// servers of the service are believed, which hold all of its keys; and where none of them has the
// version, what all of the others agree on is free, and nothing more.

// whyDiffers is why a parameter is not free on which hosts do not agree.
const whyDiffers = "the hosts of the service report different values"

// catalog returns the parameters of an engine version, nil when no host has it. Callers hold the
// view's mu for reading.
func (s *state) catalog(id catalogID) *kurabe.Catalog {
	byHost := s.catalogs[id]
	hosts := slices.Sorted(maps.Keys(byHost))
	if slices.ContainsFunc(hosts, s.isServer) {
		hosts = slices.DeleteFunc(hosts, func(h kurabe.HostID) bool { return !s.isServer(h) })
	}
	of := make([]*kurabe.Catalog, 0, len(hosts))
	for _, h := range hosts {
		of = append(of, byHost[h])
	}
	switch len(of) {
	case 0:
		return nil
	case 1:
		return of[0]
	}
	return s.agreements.of(id, of)
}

// isServer says whether a server of the service runs on a host: by the record of its joining,
// which the service writes; the first one has none, and the host's own word is believed where it
// needs no leave to speak (hostlink refuses it of others).
func (s *state) isServer(id kurabe.HostID) bool {
	if j, joined := s.joined[id]; joined {
		return j.Value.Server != nil
	}
	return s.hosts[id].Value.Server
}

// agreements are remembered, since each plan asks for them.
type agreements struct {
	mu   sync.Mutex // guards made
	made map[catalogID]agreement
}

type agreement struct {
	of   []*kurabe.Catalog
	said *kurabe.Catalog
}

func (a *agreements) of(id catalogID, of []*kurabe.Catalog) *kurabe.Catalog {
	a.mu.Lock()
	defer a.mu.Unlock()
	if made := a.made[id]; slices.Equal(made.of, of) {
		return made.said
	}
	if a.made == nil {
		a.made = map[catalogID]agreement{}
	}
	said := agree(of)
	a.made[id] = agreement{of, said}
	return said
}

// agree makes one catalog of several: of each parameter what most of them say, the earlier ones
// where as many say something else, and free only where all do.
func agree(of []*kurabe.Catalog) *kurabe.Catalog {
	said := *of[0]
	said.Parameters = nil
	names := map[string]bool{}
	for _, c := range of {
		for _, p := range c.Parameters {
			names[p.Name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		var all []kurabe.Parameter // the zero one of a host that has none
		count := map[kurabe.Parameter]int{}
		for _, c := range of {
			p, _ := c.Find(name)
			all = append(all, p)
			count[p]++
		}
		most := all[0]
		for _, p := range all[1:] {
			if count[p] > count[most] {
				most = p
			}
		}
		if most.Name == "" {
			continue
		}
		if most.Modifiable && slices.ContainsFunc(all, func(p kurabe.Parameter) bool { return terms(p) != terms(most) }) {
			most.Modifiable, most.Fixed = false, whyDiffers
		}
		said.Parameters = append(said.Parameters, most)
	}
	return &said
}

// terms are what a user's value is judged by; hosts may differ in what they have by default.
func terms(p kurabe.Parameter) kurabe.Parameter {
	return kurabe.Parameter{Name: p.Name, Type: p.Type, Allowed: p.Allowed, Apply: p.Apply, Modifiable: p.Modifiable, System: p.System, Unit: p.Unit}
}
