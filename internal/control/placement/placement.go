package placement

import (
	"kurabe"
	"kurabe/internal/control/installed"
)

// Places are the hosts of a scope as places of servers.
type Places struct{ installed.Engines }

// CheckPlace says whether a host can take a new instance now. Where it is placed, the
// planner decides.
func (c Places) CheckPlace(s kurabe.InstanceSpec) error {
	class, ok := kurabe.FindClass(s.Now.Class)
	if !ok {
		return kurabe.Errorf(kurabe.CodeInvalidParameterValue, kurabe.WordsClass, s.Now.Class)
	}
	p := kurabe.Placement{Engine: s.Engine, Version: s.Now.EngineVersion, Class: class, Limits: s.Now.Limits(), Zone: s.Zone, Servers: int(servers(s.Now, s.Cluster))}
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
		closed[h.Host], reserved[h.Host] = c.View.Closed(h.Host), c.ReservedOn(h.Host, "")
	}
	if _, why := p.Choose(hosts, closed, reserved); why != "" {
		return kurabe.Errorf(kurabe.CodeInsufficientCapacity, "No host can take a %s now: %s", class.Name, why)
	}
	return nil
}

// CheckStay says whether an instance with such settings still fits its hosts: its servers do
// not move. One that has no standby yet and is to have one has to find a host for it.
func (c Places) CheckStay(i *kurabe.InstanceSpec, at kurabe.InstanceStatus, s kurabe.InstanceSettings) error {
	count := map[kurabe.HostID]int64{}
	if stored, ok := c.View.Instance(i.ID); ok {
		for _, a := range stored.Assignments {
			if a.Value.Goal != kurabe.GoalAbsent && (s.MultiAZ || a.Value.Instance == stored.Writer()) {
				count[a.Value.Host]++
			}
		}
	}
	total, reserved := int64(0), map[kurabe.HostID]int64{}
	for _, h := range c.View.Hosts() {
		needs, free := memoryOf(s.Class, count[h.Host]), h.MemoryBytes-c.ReservedOn(h.Host, i.ID)
		if needs > free {
			return kurabe.Errorf(kurabe.CodeInsufficientCapacity, "%s needs %s of memory, and host %s, which the %s is on, has %s left", s.Class, kurabe.FormatBytes(needs), h.Host, c.Words().Noun, kurabe.FormatBytes(max(free, 0)))
		}
		total += count[h.Host]
		reserved[h.Host] = h.MemoryBytes - free + needs
	}
	if total == 0 || total >= servers(s, i.Cluster) {
		return nil // not placed yet, or all are
	}
	if _, why := c.Standby(i.Engine, at, s, reserved); why != "" {
		return kurabe.Errorf(kurabe.CodeInsufficientCapacity, "No host can take a standby of %s now: %s", i.Name, why)
	}
	return nil
}

// Standby is the host that a standby of an instance could be on, or why there is none.
func (c Places) Standby(engine kurabe.EngineName, at kurabe.InstanceStatus, s kurabe.InstanceSettings, reserved map[kurabe.HostID]int64) (kurabe.HostReport, string) {
	writer, ok := c.View.Host(at.Host)
	class, known := kurabe.FindClass(s.Class)
	if !ok || !known {
		return kurabe.HostReport{}, ""
	}
	closed := map[kurabe.HostID]string{}
	for _, h := range c.View.Hosts() {
		closed[h.Host] = c.View.Closed(h.Host)
	}
	p := kurabe.Placement{Engine: engine, Version: s.EngineVersion, Class: class, Limits: s.Limits()}
	host, _, why := p.ChooseStandby(writer, at.Zone, c.View.Hosts(), closed, reserved)
	return host, why
}

// ReservedOn is the memory in bytes that the servers on a host hold; except is left out.
func (c Places) ReservedOn(host kurabe.HostID, except kurabe.InstanceID) (bytes int64) {
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
