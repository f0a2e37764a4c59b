package store

import (
	"maps"
	"slices"

	"kurabe"
)

// Proxy is everything stored about one proxy, read at one revision. It and everything it points
// to is shared and must not be mutated.
type Proxy struct {
	ID      kurabe.ProxyID
	Spec    *kurabe.Proxy
	SpecMod int64 // revision of the spec's last write, for PutProxy
	// Status is nil until the planner has looked at the proxy.
	Status    *kurabe.ProxyStatus
	StatusMod int64
	// Names are those of the proxy and of its endpoints, with the revision that took each.
	Names map[string]int64
	// Assignments and Reports are sorted by host.
	Assignments []Record[kurabe.ProxyAssignment]
	Reports     []Record[kurabe.ProxyReport]
}

// Key is the name by which the proxy is unique.
func (p *Proxy) Key() string {
	if p.Spec == nil {
		return ""
	}
	return p.Spec.Name
}

// Assignment returns what a host was told about the proxy.
func (p *Proxy) Assignment(host kurabe.HostID) (Record[kurabe.ProxyAssignment], bool) {
	return recordOf(p.Assignments, placeOf{host: host}, proxyAssignedTo)
}

// Report returns what a host sees of the proxy.
func (p *Proxy) Report(host kurabe.HostID) (kurabe.ProxyReport, bool) {
	r, ok := recordOf(p.Reports, placeOf{host: host}, proxyReportedBy)
	return r.Value, ok
}

func (p *Proxy) identity() *kurabe.ProxyID { return &p.ID }
func (p *Proxy) names() *map[string]int64  { return &p.Names }
func (p *Proxy) hasSpec() bool             { return p.Spec != nil }

func (p *Proxy) empty() bool {
	return p.Spec == nil && p.Status == nil && len(p.Assignments) == 0 && len(p.Reports) == 0 && len(p.Names) == 0
}

// CreateProxy writes a new spec and takes its name. Of two creates of one name exactly one
// commits.
func (c *Change) CreateProxy(p kurabe.Proxy) *Change {
	key := proxyKey(p.ID)
	return c.TakeProxyName(p.Name, p.ID).Require(key, 0).put(key, p, string(p.ID))
}

// PutProxy writes a spec that was read at specMod.
func (c *Change) PutProxy(p kurabe.Proxy, specMod int64) *Change {
	return c.RequireProxy(p.ID, specMod).put(proxyKey(p.ID), p, string(p.ID))
}

// RequireProxy demands that the spec is the one read at specMod.
func (c *Change) RequireProxy(id kurabe.ProxyID, specMod int64) *Change {
	return c.Require(proxyKey(id), specMod)
}

// RequireProxiesUnwritten demands that no spec was written after revision: a quota that was
// counted over all proxies still holds at commit.
func (c *Change) RequireProxiesUnwritten(revision int64) *Change {
	return c.RequireUnwritten(proxies, revision)
}

// TakeProxyName takes a name for a proxy, or as ProxyEndpointKey for an endpoint of it. It
// conflicts when it is taken.
func (c *Change) TakeProxyName(name string, id kurabe.ProxyID) *Change {
	return takeName(c, proxyNameKey(name), name, id)
}

// ReleaseProxyName gives a name back that was read of p.
func (c *Change) ReleaseProxyName(p *Proxy, name string) *Change {
	key := proxyNameKey(name)
	return c.Require(key, p.Names[name]).Delete(key)
}

// PutProxyStatus writes a status that was read at statusMod, 0 for the first one.
func (c *Change) PutProxyStatus(s kurabe.ProxyStatus, statusMod int64) *Change {
	key := proxyStatusKey(s.ID)
	return c.Require(key, statusMod).put(key, s, string(s.ID))
}

// DeleteProxy removes every record of a proxy but its reports, which are their agents' to drop,
// and gives its names back. It conflicts when one of them changed since p was read.
func (c *Change) DeleteProxy(p *Proxy) *Change {
	if p.Spec != nil {
		c.RequireProxy(p.ID, p.SpecMod).Delete(proxyKey(p.ID))
	}
	for _, name := range slices.Sorted(maps.Keys(p.Names)) {
		c.ReleaseProxyName(p, name)
	}
	if p.Status != nil {
		key := proxyStatusKey(p.ID)
		c.Require(key, p.StatusMod).Delete(key)
	}
	for _, a := range p.Assignments {
		c.DeleteAssignment(a.Value.Host, p.ID.Ref(), a.ModRevision)
	}
	return c
}

// Proxy returns a proxy that has a spec.
func (v *View) Proxy(id kurabe.ProxyID) (*Proxy, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	p := v.state.proxies.all[id]
	return p, p != nil && p.Spec != nil
}

// ProxyOfName returns the proxy that has a name, or as kurabe.ProxyEndpointKey an endpoint of
// that name.
func (v *View) ProxyOfName(name string) (*Proxy, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	r, ok := v.state.proxies.owners[name]
	if !ok {
		return nil, false
	}
	p := v.state.proxies.all[r.Value.ID]
	return p, p != nil && p.Spec != nil
}

// Proxies returns every proxy that has a spec, sorted by name.
func (v *View) Proxies() []*Proxy {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.state.proxies.list()
}

// ProxyLeftovers returns the proxies that have records but no spec, by id.
func (v *View) ProxyLeftovers() []*Proxy {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.state.proxies.leftovers()
}

// ProxiesOf returns the proxies whose target is an instance, by name.
func (v *View) ProxiesOf(id kurabe.InstanceID) []*Proxy {
	return slices.DeleteFunc(slices.Clone(v.Proxies()), func(p *Proxy) bool { return p.Spec.Target != id })
}

// putProxy brings in one of the records that a Proxy is made of, or a name of one.
func (s *state) putProxy(p keyParts, e Entry) error {
	if p.kind == KindProxyName {
		_, err := s.proxies.putName(p.name, e)
		return err
	}
	next := s.proxies.copyOf(p.proxy)
	var err error
	switch p.kind {
	case KindProxy:
		err = putOne(&next.Spec, &next.SpecMod, e, func(s kurabe.Proxy) error { return speaksOf(s.ID, p.proxy) })
	case KindProxyStatus:
		err = putOne(&next.Status, &next.StatusMod, e, nil)
	case KindProxyAssignment:
		err = putWord(&next.Assignments, e, p, proxyAssignedTo)
	case KindProxyReport:
		err = putWord(&next.Reports, e, p, proxyReportedBy)
	}
	if err == nil {
		s.proxies.swap(next)
	}
	return err
}

func (s *state) removeProxy(p keyParts) {
	if p.kind == KindProxyName {
		s.proxies.removeName(p.name)
		return
	}
	next := s.proxies.copyOf(p.proxy)
	switch p.kind {
	case KindProxy:
		next.Spec, next.SpecMod = nil, 0
	case KindProxyStatus:
		next.Status, next.StatusMod = nil, 0
	case KindProxyAssignment:
		next.Assignments = withoutRecord(next.Assignments, placeOf{host: p.host}, proxyAssignedTo)
	case KindProxyReport:
		next.Reports = withoutRecord(next.Reports, placeOf{host: p.host}, proxyReportedBy)
	}
	s.proxies.swap(next)
}
