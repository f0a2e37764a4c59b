package plan

import (
	"fmt"
	"maps"

	"kurabe"
	"kurabe/internal/event"
)

// maxAddressTries bounds how many endpoints are tried for a new instance before
// the user is told that the port is taken.
const maxAddressTries = 8

// place chooses host, zone and endpoint of a new instance, once. It says
// whether there is something to plan on.
func (d *draft) place() bool {
	if d.w.Catalog == nil {
		d.because("waiting for a host to read the parameters of " + string(d.w.Spec.Engine) + " " + d.w.Spec.Now.EngineVersion)
		return false
	}
	if d.had {
		d.tryAnotherAddress()
		return true
	}
	host, why := d.chooseHost()
	if why != "" {
		d.because(why)
		if d.status.State != kurabe.StateInsufficientCapacity && len(d.w.Hosts) > 0 {
			d.tell(event.CannotBeCreated.And(". " + why))
			d.status.State = kurabe.StateInsufficientCapacity
		}
		return false
	}
	address, ok := kurabe.FreeAddress(host.AddressPool, d.w.Addresses, "")
	if !ok {
		d.because("no address is free in " + host.AddressPool)
		d.status.State = kurabe.StateIncompatibleNetwork
		return false
	}
	if d.w.Spec.Cluster && !d.placeEndpoints(host, address) {
		d.because("no three addresses are free in " + host.AddressPool)
		d.status.State = kurabe.StateIncompatibleNetwork
		return false
	}
	d.status.State = kurabe.StateCreating
	d.status.Host, d.next.Host, d.next.Address = host.Host, host.Host, address
	d.status.Zone = d.w.Spec.Zone
	if d.status.Zone == "" {
		d.status.Zone = host.Zones[int(d.w.Spec.ID[len(d.w.Spec.ID)-1])%len(host.Zones)]
	}
	d.because(fmt.Sprintf("placed on host %s, zone %s, endpoint %s", host.Host, d.status.Zone, address))
	return true
}

// placeEndpoints gives the first server of a cluster an address of its own, and the standbys
// one for all of them. It says whether there are any.
func (d *draft) placeEndpoints(host kurabe.HostReport, endpoint string) (ok bool) {
	taken := maps.Clone(d.w.Addresses)
	if taken == nil {
		taken = map[string]bool{}
	}
	taken[endpoint] = true
	if d.next.ReaderAddress, ok = kurabe.FreeAddress(host.AddressPool, taken, ""); !ok {
		return false
	}
	taken[d.next.ReaderAddress] = true
	d.next.ListensAt, ok = kurabe.FreeAddress(host.AddressPool, taken, "")
	return ok
}

// chooseHost takes the host for a new instance, or says why there is none.
func (d *draft) chooseHost() (kurabe.HostReport, string) {
	p, why := d.placement()
	if why != "" {
		return kurabe.HostReport{}, why
	}
	return p.Choose(d.w.Hosts, d.w.Closed, d.w.Reserved)
}

// placement is what the instance asks of its host, or why that is not known.
func (d *draft) placement() (kurabe.Placement, string) {
	s := d.w.Spec
	class, ok := kurabe.FindClass(s.Now.Class)
	if !ok {
		return kurabe.Placement{}, "class " + s.Now.Class + " is not known"
	}
	p := kurabe.Placement{Engine: s.Engine, Version: s.Now.EngineVersion, Class: class, Limits: s.Now.Limits(), Zone: s.Zone, Servers: 1, Data: d.w.OriginHost}
	p.Filtered = d.filterFor("", s.Now.Port) != nil
	if s.Now.MultiAZ {
		p.Servers = 1 + d.standbysWanted()
	}
	if up := d.w.Source; d.follows() && up != nil && up.Assignment != nil {
		if source := d.hostReport(up.Assignment.Host); len(source.Zones) > 0 { // it has reported
			p.Source = &source
		}
	}
	return p, ""
}

// hostReport is what a host has said of itself.
func (d *draft) hostReport(id kurabe.HostID) kurabe.HostReport {
	for _, h := range d.w.Hosts {
		if h.Host == id {
			return h
		}
	}
	return kurabe.HostReport{Host: id}
}

// tryAnotherAddress moves an instance that was never available to another
// endpoint when the host found the port taken; an advertised one never moves.
func (d *draft) tryAnotherAddress() {
	r := d.w.Report
	if !d.status.AvailableAt.IsZero() || d.status.AddressTries >= maxAddressTries || r == nil ||
		r.Generation != d.next.Generation || r.Failure == nil || r.Failure.Kind != kurabe.FailureNetwork {
		return
	}
	for _, h := range d.w.Hosts {
		if h.Host != d.next.Host {
			continue
		}
		if address, ok := kurabe.FreeAddress(h.AddressPool, d.w.Addresses, d.next.Address); ok {
			d.because("port taken at " + d.next.Address + ": trying " + address)
			d.next.Address = address
			d.status.AddressTries++
		}
	}
}
