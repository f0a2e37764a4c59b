package kurabe

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Placement is what a new instance asks of the host that it is placed on.
type Placement struct {
	Engine  EngineName
	Version string
	Class   Class
	Limits  Limits
	Zone    string // "": any
	// Servers is how many it begins with, each in a zone of its own, on two hosts if there
	// are two.
	Servers int
	// Filtered: its security groups do not permit everything.
	Filtered bool
	// Taken are the zones that other servers of it have already.
	Taken []string
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
		if refused == "" && p.Servers > 1 {
			refused = p.refusesPair(h, hosts, closed, reserved)
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

// refusesPair says why an instance with its first server on a host cannot have its standbys,
// "" when it can. In which zone of its own the first one will be is not known yet.
func (p Placement) refusesPair(h HostReport, hosts []HostReport, closed map[HostID]string, reserved map[HostID]int64) (why string) {
	for _, zone := range h.Zones {
		if p.Zone != "" && p.Zone != zone {
			continue
		}
		if why = p.refusesStandbys(h, zone, hosts, closed, reserved); why == "" {
			return ""
		}
	}
	return why
}

// refusesStandbys is refusesPair for a zone.
func (p Placement) refusesStandbys(h HostReport, zone string, hosts []HostReport, closed map[HostID]string, reserved map[HostID]int64) string {
	held := map[HostID]int64{}
	maps.Copy(held, reserved)
	held[h.Host] += p.Class.MemoryBytes
	p.Taken = []string{zone}
	for range p.Servers - 1 {
		host, its, why := p.ChooseStandby(h, zone, hosts, closed, held)
		if why != "" {
			return why
		}
		held[host.Host] += p.Class.MemoryBytes
		p.Taken = append(p.Taken, its)
	}
	return ""
}

// ChooseStandby takes host and zone for the standby of a server, or says why there is none:
// another host in another zone, the one with most memory free, and else another zone of the
// same host, which outlives no loss of that.
func (p Placement) ChooseStandby(writer HostReport, zone string, hosts []HostReport, closed map[HostID]string, reserved map[HostID]int64) (host HostReport, standbyZone, why string) {
	why = fmt.Sprintf("host %s is in zone %s alone, and a standby needs another one", writer.Host, zone)
	if len(p.Taken) > 1 {
		why = fmt.Sprintf("no host is in another zone than %v, and each server needs one of its own", p.Taken)
	}
	most, own := int64(-1), ""
	q := p
	q.Data, q.Zone, q.Source = "", "", &writer
	for _, h := range hosts {
		others := slices.DeleteFunc(slices.Clone(h.Zones), func(z string) bool { return z == zone || slices.Contains(p.Taken, z) })
		if len(others) == 0 {
			continue
		}
		refused := closed[h.Host]
		if refused == "" {
			refused = q.refuses(h, reserved[h.Host])
		}
		if refused == "" && !h.Pairs(writer) {
			refused = fmt.Sprintf("hosts %s and %s are in different networks, and the endpoint of an instance moves within one", writer.Host, h.Host)
		}
		free := h.MemoryBytes - reserved[h.Host]
		switch {
		case h.Host == writer.Host:
			own = refused
			if refused == "" && most < 0 {
				host, standbyZone, most = h, slices.Min(others), 0
			}
		case refused != "":
			why = refused
		case free > most || host.Host == writer.Host:
			host, standbyZone, most = h, slices.Min(others), free
		}
	}
	switch {
	case most >= 0:
		return host, standbyZone, ""
	case own != "":
		return host, "", own
	}
	return host, "", why
}

// refuses says why a host cannot take one server of the instance, "" when it can.
func (p Placement) refuses(h HostReport, reserved int64) string {
	id, needs := string(h.Host), p.Class.MemoryBytes
	free := max(h.MemoryBytes-reserved, 0)
	switch {
	case !h.Offers(p.Engine, p.Version) && (p.Source == nil || !h.succeeds(p.Engine, p.Version)):
		return fmt.Sprintf("host %s does not have %s %s", id, p.Engine, p.Version)
	case p.Class.Unfit(h) != "":
		return "host " + id + " cannot hold " + p.Class.Name + ": " + p.Class.Unfit(h)
	case p.Limits.ReadIOPS > 0 && !h.Has("io"):
		return fmt.Sprintf("host %s cannot enforce IOPS (%s)", id, h.Detail("io"))
	case p.Filtered && !h.Has(LeverFilter):
		return fmt.Sprintf("host %s cannot filter packets as its security groups demand (%s)", id, h.Detail(LeverFilter))
	case p.Source != nil && p.Source.Host != h.Host && (h.alone() || p.Source.alone()):
		return fmt.Sprintf("hosts %s and %s cannot reach each other's databases, since the address pool of one of them is a loopback network", p.Source.Host, id)
	case free < needs:
		return fmt.Sprintf("%s needs %s and host %s has %s left", p.Class.Name, FormatBytes(needs), id, FormatBytes(free))
	}
	return ""
}

// Offers says whether a version can be run on a host, Ready whether its parameters were read,
// too.
func (h HostReport) Offers(engine EngineName, version string) bool {
	return slices.ContainsFunc(h.Engines, func(v EngineVersion) bool { return v.Engine == engine && v.Version == version && v.Reason == "" })
}

func (h HostReport) Ready(engine EngineName, version string) bool {
	return slices.ContainsFunc(h.Engines, func(v EngineVersion) bool { return v.Engine == engine && v.Version == version && v.Ready })
}

// succeeds says whether a host can run a later minor version. A server that gets its data from
// another one may: the packages of hosts are not replaced at one moment.
func (h HostReport) succeeds(engine EngineName, version string) bool {
	return slices.ContainsFunc(h.Engines, func(v EngineVersion) bool {
		return v.Engine == engine && v.Reason == "" && strings.HasPrefix(version, v.Major()+".") && CompareVersions(v.Version, version) > 0
	})
}

// Reaches says whether the databases of two hosts reach each other.
func (h HostReport) Reaches(o HostReport) bool { return h.Host == o.Host || !h.alone() && !o.alone() }

// Pairs says whether a server on this host can have a standby on the other one, which may be
// itself, in another zone. The endpoint has to be an address that both can hold.
func (h HostReport) Pairs(o HostReport) bool {
	together := h.Host == o.Host || h.Reaches(o) && h.Network != "" && h.Network == o.Network
	return together && slices.ContainsFunc(h.Zones, func(zone string) bool {
		return slices.ContainsFunc(o.Zones, func(other string) bool { return other != zone })
	})
}

// alone says that no other host reaches its databases.
func (h HostReport) alone() bool {
	p, err := netip.ParsePrefix(h.AddressPool)
	return err != nil || p.Addr().IsLoopback()
}

// Subnet is one member of a subnet group. Kurabe has one flat network, so a
// subnet is a label that names a zone.
type Subnet struct {
	ID   string `json:"id"`
	Zone string `json:"zone"`
}

// SubnetGroup names the zones that an instance may be placed in. The API writes
// it.
type SubnetGroup struct {
	Name        string    `json:"name"`
	Description string    `json:"description"`
	Subnets     []Subnet  `json:"subnets"`
	Tags        []Tag     `json:"tags,omitempty"`
	Revision    int64     `json:"revision"`
	CreatedAt   time.Time `json:"createdAt"`
}

// FreeAddress returns the first address of a pool after the given one ("": from the start)
// that is not taken. The pool's network and broadcast
// addresses are left out.
func FreeAddress(pool string, taken map[string]bool, after string) (string, bool) {
	prefix, err := netip.ParsePrefix(pool)
	if err != nil {
		return "", false
	}
	start := prefix.Masked().Addr().Next()
	if a, err := netip.ParseAddr(after); err == nil && prefix.Contains(a) {
		start = a.Next()
	}
	for a := start; prefix.Contains(a) && prefix.Contains(a.Next()); a = a.Next() {
		if !taken[a.String()] {
			return a.String(), true
		}
	}
	return "", false
}
