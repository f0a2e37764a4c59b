package packetfilter

import (
	"fmt"
	"net/netip"
	"slices"

	"kurabe"
)

// Server is one server of this host, or a proxy: what clients are led to, and whose connections
// leave.
type Server struct {
	ID string
	// Addresses are those that clients of it use, also of other servers of the instance.
	Addresses []netip.AddrPort
	// Account is the user id that it runs as, 0 for one that is not its own. Follows are the servers
	// that it replicates from.
	Account int
	Follows []netip.AddrPort
	// Filter is nil where everything is permitted.
	Filter *Rules
}

// Rules is what is permitted.
type Rules struct {
	Sources        []netip.Prefix
	Hosts          []netip.Addr // that have other servers of the instance, or followers of it
	Destinations   []Destination
	AnyDestination bool
}

// Destination is what a server may connect to. Protocol is tcp, udp, or "" for both.
type Destination struct {
	Network  netip.Prefix
	Protocol string
	FromPort uint16
	ToPort   uint16
}

// ServerOf reads the assignment of a server that runs as a user id.
func ServerOf(a kurabe.Assignment, account int) (Server, error) {
	s := Server{ID: string(a.Instance), Account: account}
	for _, text := range []string{a.Address, a.ListensAt, a.ReaderAddress} {
		if text == "" {
			continue
		}
		ip, err := netip.ParseAddr(text)
		if err != nil {
			return s, fmt.Errorf("address of %s: %w", a.Name, err)
		}
		s.Addresses = append(s.Addresses, netip.AddrPortFrom(ip.Unmap(), uint16(a.Port)))
	}
	if a.Role != nil && a.Role.Source != nil {
		ip, err := netip.ParseAddr(a.Role.Source.Address)
		if err != nil {
			return s, fmt.Errorf("source of %s: %w", a.Name, err)
		}
		at := netip.AddrPortFrom(ip.Unmap(), uint16(a.Role.Source.Port))
		s.Follows = append(s.Follows, at)
		if a.Role.Source.ID.Owner() == a.Instance.Owner() && !slices.Contains(s.Addresses, at) {
			s.Addresses = append(s.Addresses, at)
		}
	}
	if a.Filter == nil {
		return s, nil
	}
	rules, err := rulesOf(*a.Filter)
	if err != nil {
		return s, fmt.Errorf("security groups of %s: %w", a.Name, err)
	}
	s.Filter = rules
	return s, nil
}

func rulesOf(f kurabe.PacketFilter) (*Rules, error) {
	r := &Rules{AnyDestination: f.AnyDestination}
	for _, text := range f.Sources {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, err
		}
		r.Sources = append(r.Sources, p)
	}
	for _, text := range f.Hosts {
		ip, err := netip.ParseAddr(text)
		if err != nil {
			return nil, err
		}
		r.Hosts = append(r.Hosts, ip.Unmap())
	}
	for _, d := range f.Destinations {
		p, err := netip.ParsePrefix(d.Network)
		if err != nil {
			return nil, err
		}
		protocol := d.Protocol
		if protocol == kurabe.AnyProtocol {
			protocol = ""
		}
		r.Destinations = append(r.Destinations, Destination{p, protocol, uint16(d.FromPort), uint16(d.ToPort)})
	}
	return r, nil
}

// permits says whether a client at an address may connect.
func (r *Rules) permits(from netip.Addr) bool {
	return slices.Contains(r.Hosts, from) || slices.ContainsFunc(r.Sources, func(p netip.Prefix) bool { return p.Contains(from) })
}

// reaches says whether a server may connect to a TCP port.
func (r *Rules) reaches(to netip.AddrPort) bool {
	return r.AnyDestination || slices.ContainsFunc(r.Destinations, func(d Destination) bool {
		return d.Protocol != "udp" && d.Network.Contains(to.Addr()) && d.FromPort <= to.Port() && to.Port() <= d.ToPort
	})
}
