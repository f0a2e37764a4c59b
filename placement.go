package kurabe

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Placement is what a new instance asks of the host that it is placed on.
type Placement struct {
	Engine  EngineName
	Version string
	Class   Class
	Limits  Limits
	Zone    string // "": any
	// Servers is how many it begins with. They are on one host, in a zone each.
	Servers int
	// Data is the only host that has what it is made of, "": all have.
	Data HostID
	// Source is the host that it gets its data and its log from over the network, nil: none.
	Source *HostReport
}

// Choose takes the host with most memory free that can have the instance, or says why none
// can. closed says of hosts why nothing new is placed on them, reserved is the memory in
// bytes that others hold there.
func (p Placement) Choose(hosts []HostReport, closed map[HostID]string, reserved map[HostID]int64) (HostReport, string) {
	var best HostReport
	bestFree, why := int64(-1), "no host has reported yet"
	if len(hosts) > 0 {
		why = "no host is in zone " + p.Zone
	}
	for _, h := range hosts {
		if len(h.Zones) == 0 || p.Zone != "" && !slices.Contains(h.Zones, p.Zone) || p.Data != "" && h.Host != p.Data {
			if h.Host == p.Data {
				why = fmt.Sprintf("host %s has the snapshot, and is not in zone %s", h.Host, p.Zone)
			}
			continue
		}
		refused := closed[h.Host]
		if refused == "" {
			refused = p.refuses(h, reserved[h.Host])
		}
		switch free := h.MemoryBytes - reserved[h.Host]; {
		case refused != "" && p.Data != "":
			why = fmt.Sprintf("host %s has the snapshot: %s", h.Host, refused)
		case refused != "":
			why = refused
		case free > bestFree:
			best, bestFree = h, free
		}
	}
	if bestFree < 0 {
		return HostReport{}, why
	}
	return best, ""
}

// refuses says why a host cannot take the instance, "" when it can.
func (p Placement) refuses(h HostReport, reserved int64) string {
	id, needs := string(h.Host), p.Class.MemoryBytes*int64(p.Servers)
	free := max(h.MemoryBytes-reserved, 0)
	switch {
	case len(h.Zones) < p.Servers:
		return fmt.Sprintf("host %s is in zone %s alone, and a standby needs another one", id, strings.Join(h.Zones, ", "))
	case !h.offers(p.Engine, p.Version):
		return fmt.Sprintf("host %s does not have %s %s", id, p.Engine, p.Version)
	case p.Class.Unfit(h) != "":
		return "host " + id + " cannot hold " + p.Class.Name + ": " + p.Class.Unfit(h)
	case p.Limits.ReadIOPS > 0 && !h.Has("io"):
		return fmt.Sprintf("host %s cannot enforce IOPS (%s)", id, h.Detail("io"))
	case p.Source != nil && p.Source.Host != h.Host && (h.alone() || p.Source.alone()):
		return fmt.Sprintf("hosts %s and %s cannot reach each other's databases, since the address pool of one of them is a loopback network", p.Source.Host, id)
	case free < needs && p.Servers > 1:
		return fmt.Sprintf("%s with a standby needs %s and host %s has %s left", p.Class.Name, FormatBytes(needs), id, FormatBytes(free))
	case free < needs:
		return fmt.Sprintf("%s needs %s and host %s has %s left", p.Class.Name, FormatBytes(needs), id, FormatBytes(free))
	}
	return ""
}

// offers says whether a version can be run on a host.
func (h HostReport) offers(engine EngineName, version string) bool {
	return slices.ContainsFunc(h.Engines, func(v EngineVersion) bool { return v.Engine == engine && v.Version == version && v.Reason == "" })
}

// alone says that no other host reaches its databases.
func (h HostReport) alone() bool {
	p, err := netip.ParsePrefix(h.AddressPool)
	return err != nil || p.Addr().IsLoopback()
}
