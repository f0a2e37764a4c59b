package kurabe

import (
	"net/netip"
	"slices"
	"strings"
	"time"
)

// DefaultSecurityGroup is the id of the default security group in records, whatever id the API
// gives it. There is no record of it until it is changed: see OpenSecurityGroup.
const DefaultSecurityGroup = "default"

// SecurityGroup says from where the members' endpoints are reached, and what the members' servers
// reach. The API writes it.
type SecurityGroup struct {
	ID          string         `json:"id"` // sg-…, or DefaultSecurityGroup
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Rules       []SecurityRule `json:"rules,omitempty"` // in the order in which they came
	Tags        []Tag          `json:"tags,omitempty"`
	CreatedAt   time.Time      `json:"createdAt,omitzero"`
}

// SecurityRule permits one network. What no rule of a member's groups permits is refused.
type SecurityRule struct {
	ID       string `json:"id"` // sgr-…
	Egress   bool   `json:"egress,omitempty"`
	Protocol string `json:"protocol"` // AnyProtocol, tcp, udp, icmp, icmpv6, or a number of IANA's
	// FromPort and ToPort are the ports of TCP and UDP, type and code of ICMP, -1 for all.
	FromPort    int    `json:"from"`
	ToPort      int    `json:"to"`
	Network     string `json:"network"` // CIDR
	Description string `json:"description,omitempty"`
	Tags        []Tag  `json:"tags,omitempty"`
}

// AnyProtocol is the Protocol of a rule for every protocol and port.
const AnyProtocol = "-1"

// The networks of everybody.
const (
	AllIPv4 = "0.0.0.0/0"
	AllIPv6 = "::/0"
)

// OpenSecurityGroup is the default group of a service whose users have not changed it: it permits
// everything, so that a fresh service is of use without any setting.
func OpenSecurityGroup() SecurityGroup {
	rule := func(id string, egress bool, network string) SecurityRule {
		return SecurityRule{ID: "sgr-" + id, Egress: egress, Protocol: AnyProtocol, FromPort: -1, ToPort: -1, Network: network}
	}
	return SecurityGroup{ID: DefaultSecurityGroup, Name: "default", Description: "default VPC security group", Rules: []SecurityRule{
		rule("00000000000000001", false, AllIPv4), rule("00000000000000002", false, AllIPv6),
		rule("00000000000000003", true, AllIPv4), rule("00000000000000004", true, AllIPv6),
	}}
}

// permits says whether a rule is about connections to a TCP port.
func (r SecurityRule) permits(port int) bool {
	return r.Protocol == AnyProtocol || r.Protocol == "tcp" && r.FromPort <= port && port <= r.ToPort
}

// PacketFilter is what the kernel of a host lets through to a server and from it. Whatever the
// groups say, the servers of an instance and its read replicas reach each other, and the service
// reaches all of them.
type PacketFilter struct {
	// Sources are the networks from which clients reach the server.
	Sources []string `json:"sources"`
	// Destinations are what the server may connect to. AnyDestination: everything.
	Destinations   []Destination `json:"destinations,omitempty"`
	AnyDestination bool          `json:"anyDestination,omitempty"`
	// Hosts are the addresses of the other hosts that have servers or read replicas of the
	// instance.
	Hosts []string `json:"hosts,omitempty"`
}

// Destination is what a server may connect to: ports of a network. Protocol is tcp, udp, or
// AnyProtocol for both.
type Destination struct {
	Network  string `json:"network"`
	Protocol string `json:"protocol"`
	FromPort int    `json:"from"`
	ToPort   int    `json:"to"`
}

// FilterOf is what groups together permit of a server with a port; nil where that is everything.
// Lists are sorted and hold nothing twice.
func FilterOf(groups []SecurityGroup, port int) *PacketFilter {
	var f PacketFilter
	for _, g := range groups {
		for _, r := range g.Rules {
			switch {
			case !r.Egress && r.permits(port):
				f.Sources = append(f.Sources, r.Network)
			case r.Egress && r.Protocol == AnyProtocol:
				f.Destinations = append(f.Destinations, Destination{r.Network, AnyProtocol, 0, maxPort})
			case r.Egress && (r.Protocol == "tcp" || r.Protocol == "udp"):
				f.Destinations = append(f.Destinations, Destination{r.Network, r.Protocol, r.FromPort, r.ToPort})
			}
		}
	}
	f.Sources, f.Destinations = sortedNetworks(f.Sources), sortedDestinations(f.Destinations)
	all := func(network string) bool {
		return slices.Contains(f.Destinations, Destination{network, AnyProtocol, 0, maxPort})
	}
	if all(AllIPv4) && all(AllIPv6) {
		f.Destinations, f.AnyDestination = nil, true
	}
	// Endpoints have addresses of IPv4.
	if f.AnyDestination && slices.Contains(f.Sources, AllIPv4) {
		return nil
	}
	return &f
}

const maxPort = 65535

func sortedNetworks(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

func sortedDestinations(list []Destination) []Destination {
	slices.SortFunc(list, func(a, b Destination) int {
		switch {
		case a.Network != b.Network:
			return strings.Compare(a.Network, b.Network)
		case a.Protocol != b.Protocol:
			return strings.Compare(a.Protocol, b.Protocol)
		case a.FromPort != b.FromPort:
			return a.FromPort - b.FromPort
		}
		return a.ToPort - b.ToPort
	})
	return slices.Compact(list)
}

// LeverFilter is the lever of a host that can filter packets.
const LeverFilter = "filter"

// MaxSecurityGroups is how many one instance has at most, EC2's quota for a network interface.
const MaxSecurityGroups = 5

// GroupsOf are the security groups of something by its spec, where none means the default one.
func GroupsOf(ids []string) []string {
	if len(ids) == 0 {
		return []string{DefaultSecurityGroup}
	}
	return ids
}

// CheckNetwork folds a CIDR of a rule: the address bits behind the prefix must be zero, as EC2
// demands.
func CheckNetwork(text string, ipv6 bool) (string, error) {
	p, err := netip.ParsePrefix(text)
	if err != nil || p.Addr().Is4() == ipv6 || p.Addr().Is4In6() {
		return "", Errorf(CodeInvalidParameterValue, "CIDR block %.100s is malformed", text)
	}
	if p.Masked() != p {
		return "", Errorf(CodeInvalidParameterValue, "CIDR block %s is malformed: it has bits behind its prefix; did you mean %s?", text, p.Masked())
	}
	return p.String(), nil
}
