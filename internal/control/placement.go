package control

import (
	"kurabe"
)

// checkPlace says whether a host can take a new instance now. Where it is placed, the
// planner decides.
func (c *Control) checkPlace(s kurabe.InstanceSpec) error {
	class, ok := kurabe.FindClass(s.Now.Class)
	if !ok {
		return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "Invalid DB Instance class: %s", s.Now.Class)
	}
	p := kurabe.Placement{Engine: s.Engine, Version: s.Now.EngineVersion, Class: class, Limits: s.Now.Limits(), Zone: s.Zone, Servers: int(servers(s.Now))}
	if s.Origin != nil {
		if from, ok := c.View.AnySnapshot(s.Origin.Snapshot); ok && from.Status != nil {
			p.Data = from.Status.Host
		}
	}
	if source, ok := c.View.Instance(s.Source); ok && source.Status != nil {
		if h, ok := c.View.Host(source.Status.Host); ok {
			p.Source = &h
		}
	}
	hosts, closed, reserved := c.View.Hosts(), map[kurabe.HostID]string{}, map[kurabe.HostID]int64{}
	for _, h := range hosts {
		closed[h.Host], reserved[h.Host] = c.View.Closed(h.Host), c.reservedOn(h.Host, "")
	}
	if _, why := p.Choose(hosts, closed, reserved); why != "" {
		return kurabe.Errorf(kurabe.CodeInsufficientCapacity, "No host can take a %s now: %s", class.Name, why)
	}
	return nil
}

// checkStay says whether an instance with such settings still fits its host: it does not
// move.
func (c *Control) checkStay(host kurabe.HostID, id kurabe.InstanceID, s kurabe.InstanceSettings) error {
	h, ok := c.View.Host(host)
	if !ok {
		return nil // not placed yet
	}
	needs, free := memoryOf(s.Class, servers(s)), h.MemoryBytes-c.reservedOn(host, id)
	if needs > free {
		return kurabe.Errorf(kurabe.CodeInsufficientCapacity, "%s needs %s of memory, and host %s, which the DB instance is on, has %s left", s.Class, kurabe.FormatBytes(needs), host, kurabe.FormatBytes(max(free, 0)))
	}
	return nil
}

// reservedOn is the memory in bytes that the servers on a host hold; except is left out.
func (c *Control) reservedOn(host kurabe.HostID, except kurabe.InstanceID) (bytes int64) {
	for _, i := range c.View.Instances() {
		if i.Spec == nil || i.ID == except {
			continue
		}
		for _, a := range i.Assignments {
			if a.Value.Host != host {
				continue
			}
			most := memoryOf(i.Spec.Now.Class, 1)
			if i.Spec.Next != nil {
				most = max(most, memoryOf(i.Spec.Next.Class, 1))
			}
			bytes += most
		}
	}
	return bytes
}
