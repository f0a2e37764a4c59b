package endpointtest

import (
	"net/netip"
	"slices"
	"sync"

	"kurabe/internal/gateway"
)

// Endpoint is one that only notes what becomes of it.
type Endpoint struct {
	sync.Mutex // guards the rest
	Routes     []gateway.Route
	Closed     bool
	Left       bool
}

func (n *Endpoint) Follow(r gateway.Route) error {
	n.Lock()
	defer n.Unlock()
	if len(n.Routes) > 0 && r.Epoch < n.Routes[len(n.Routes)-1].Epoch {
		return gateway.ErrDeposed
	}
	n.Routes = append(n.Routes, r)
	return nil
}

func (n *Endpoint) Close() error {
	n.Lock()
	defer n.Unlock()
	n.Closed = true
	return nil
}

func (n *Endpoint) Leave() error {
	n.Lock()
	defer n.Unlock()
	n.Left = true
	return nil
}

// Network is an interface of a machine.
type Network struct {
	Here      []netip.Addr
	Announced []netip.Addr
	Failing   error
}

func (f *Network) Hold(a netip.Addr) error {
	if f.Failing == nil && !slices.Contains(f.Here, a) {
		f.Here = append(f.Here, a)
	}
	return f.Failing
}

func (f *Network) Drop(a netip.Addr) error {
	if f.Failing == nil {
		f.Here = slices.DeleteFunc(f.Here, func(h netip.Addr) bool { return h == a })
	}
	return f.Failing
}

func (f *Network) Held() ([]netip.Addr, error) { return f.Here, f.Failing }

func (f *Network) Announce(a netip.Addr) error {
	f.Announced = append(f.Announced, a)
	return f.Failing
}
