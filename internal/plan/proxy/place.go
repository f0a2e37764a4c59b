package proxy

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"kurabe"
)

// place chooses a host and an address for each endpoint. It says whether there is something to
// plan on.
func (d *draft) place() bool {
	if d.have != nil {
		d.next = d.have.Assignment
	} else {
		host, ok := d.chooseHost()
		if !ok {
			d.because("no host takes proxies")
			d.state(kurabe.ProxyInsufficientResource, "no host takes proxies")
			return false
		}
		d.next.Host, d.status.Host = host.Host, host.Host
		d.next.Generation = d.highest()
		d.because("placed on host " + string(host.Host))
	}
	if !d.address() {
		if d.have == nil {
			d.status.Host = ""
		}
		return false
	}
	return true
}

// highest is a generation that no order of the proxy to its host exceeds: one that was called
// off may be there still.
func (d *draft) highest() (g kurabe.Generation) {
	for _, o := range d.w.Orders {
		if o.Assignment.Host == d.next.Host {
			g = max(g, o.Assignment.Generation)
		}
	}
	return g
}

// chooseHost takes the host with the fewest proxies that is heard, takes new things, and is not
// the writer's: the loss of one host should not take both away. Where the order for a removal
// is under way the proxy cannot come back yet.
func (d *draft) chooseHost() (kurabe.HostReport, bool) {
	writer := d.writerHost()
	var free []kurabe.HostReport
	for _, h := range d.w.Hosts {
		_, lost := d.w.Lost[h.Host]
		leaving := slices.ContainsFunc(d.w.Orders, func(o Order) bool { return o.Assignment.Host == h.Host && o.Assignment.Host != d.status.Host })
		if !lost && !d.w.Removed[h.Host] && d.w.Closed[h.Host] == "" && !leaving {
			free = append(free, h)
		}
	}
	if len(free) == 0 {
		return kurabe.HostReport{}, false
	}
	rank := func(h kurabe.HostReport) int {
		if h.Host == writer {
			return 1
		}
		return 0
	}
	return slices.MinFunc(free, func(a, b kurabe.HostReport) int {
		return cmp.Or(rank(a)-rank(b), d.w.Proxies[a.Host]-d.w.Proxies[b.Host], cmp.Compare(a.Host, b.Host))
	}), true
}

// address gives each endpoint of the spec an address that its host can hold: the one that it
// has where that is so, since clients know it.
func (d *draft) address() bool {
	at := slices.IndexFunc(d.w.Hosts, func(h kurabe.HostReport) bool { return h.Host == d.next.Host })
	if at < 0 {
		d.because("host " + string(d.next.Host) + " has not reported")
		return d.have != nil
	}
	host, taken, had := d.w.Hosts[at], maps.Clone(d.w.Addresses), map[kurabe.ProxyEndpointID]string{}
	if taken == nil {
		taken = map[string]bool{}
	}
	for _, l := range d.next.Endpoints {
		if holds(host, l.Address) {
			had[l.ID], taken[l.Address] = l.Address, true
		}
	}
	d.next.Endpoints = nil
	for _, e := range d.w.Spec.Endpoints {
		address := had[e.ID]
		if address == "" {
			var ok bool
			if address, ok = kurabe.FreeAddress(host.AddressPool, taken, ""); !ok {
				d.because("no address is free in " + host.AddressPool)
				d.state(kurabe.ProxyIncompatibleNetwork, "no address is free in "+host.AddressPool)
				return false
			}
			taken[address] = true
		}
		d.next.Endpoints = append(d.next.Endpoints, kurabe.ProxyListener{ID: e.ID, Name: e.Name, Address: address, Reads: e.Reads})
	}
	return true
}

// holds says whether a host can have an address: one of its own pool, or of the network that
// the pool is a part of.
func holds(h kurabe.HostReport, address string) bool {
	at, err := netip.ParseAddr(address)
	if err != nil {
		return false
	}
	for _, text := range []string{h.AddressPool, h.Network} {
		if prefix, err := netip.ParsePrefix(text); err == nil && prefix.Contains(at) {
			return true
		}
	}
	return false
}
