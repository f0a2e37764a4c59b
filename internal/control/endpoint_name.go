package control

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"

	"kurabe"
	"kurabe/internal/control/proxy"
	"kurabe/internal/store"
)

// Endpoint is where clients are told to reach an instance, a cluster's writer or a server of
// a cluster: a name where endpoints have names, else an address. It is "" while there is none.
func (c *Control) Endpoint(i Instance) string {
	address, domain := i.endpointAddress(false), c.View.EndpointDomain().Value
	switch {
	case address == "" || !domain.Named():
		return address
	case i.Spec.Cluster && i.Server == nil:
		return domain.Cluster(i.Name)
	}
	return domain.Instance(i.Name)
}

// ReaderEndpoint is where clients are told to reach the standbys of a cluster.
func (c *Control) ReaderEndpoint(i Instance) string {
	address, domain := i.endpointAddress(true), c.View.EndpointDomain().Value
	if address == "" || !domain.Named() {
		return address
	}
	return domain.ClusterReader(i.Name)
}

// endpointAddress is the address behind an endpoint, "" until it has come up once.
func (i Instance) endpointAddress(reader bool) string {
	switch {
	case i.Server != nil && !i.Server.CreatedAt.IsZero():
		return cmp.Or(i.Server.Address, i.Status.Address)
	case i.Server != nil || i.Status.AvailableAt.IsZero():
		return ""
	case reader:
		return i.Status.ReaderAddress
	}
	return i.Status.Address
}

// ResolveEndpoint returns the address behind the name of an endpoint. Names of what is not
// there, or not yet, have none; within says whether the service answers for the name at all.
func (c *Control) ResolveEndpoint(name string) (address netip.Addr, within bool) {
	domain := c.View.EndpointDomain().Value
	of, ok := domain.Find(name)
	if !ok {
		return netip.Addr{}, domain.Within(name)
	}
	if of.Proxy {
		return c.resolveProxy(of), true
	}
	i, err := c.of(of.Cluster).Instance(of.Name)
	if err != nil {
		return netip.Addr{}, true
	}
	address, _ = netip.ParseAddr(i.endpointAddress(of.Reader)) // none is no address
	return address, true
}

// EndpointDomain is what the names of endpoints end with, ID.REGION.rds.SUFFIX.
func (c *Control) EndpointDomain() string { return c.View.EndpointDomain().Value.String() }

// SetEndpointSuffix has the names of endpoints end with another suffix, "" for no names. The
// id of the service's domain is made once.
func SetEndpointSuffix(ctx context.Context, kv store.KV, view *store.View, region, suffix string) error {
	for {
		was := view.EndpointDomain()
		next := was.Value
		if next.ID == "" {
			next = kurabe.NewEndpointDomain(region, suffix)
		}
		next.Region, next.Suffix = region, suffix
		if next == was.Value || suffix == "" && was.Value.ID == "" {
			return nil
		}
		revision, err := store.NewChange().PutEndpointDomain(next, was.ModRevision).Commit(ctx, kv)
		if err == nil {
			return view.WaitRevision(ctx, revision)
		}
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
		if err := view.WaitRevision(ctx, view.Revision()+1); err != nil {
			return err
		}
	}
}

// ProxyEndpointName is where clients are told to reach an endpoint of a proxy, "" while it listens
// nowhere. RDS has no member for its port: it is told with the address where it is not the engine's.
func (c *Control) ProxyEndpointName(e proxy.Endpoint) string {
	domain := c.View.EndpointDomain().Value
	name := e.Address
	switch {
	case e.Address == "":
		return ""
	case domain.Named():
		name = domain.ProxyEndpoint(e.Proxy.Spec.Name, e.Spec.Name)
	}
	if e.Port != e.Proxy.Spec.Port() {
		name = net.JoinHostPort(name, strconv.Itoa(e.Port))
	}
	return name
}

// resolveProxy returns the address of an endpoint of a proxy, none where there is none.
func (c *Control) resolveProxy(of kurabe.EndpointOf) netip.Addr {
	list, _ := c.ListProxyEndpoints(of.Name, kurabe.ProxyDefaultEndpoint)
	if of.ProxyEndpoint {
		list, _ = c.ListProxyEndpoints("", of.Name)
	}
	if len(list) != 1 {
		return netip.Addr{}
	}
	address, _ := netip.ParseAddr(list[0].Address)
	return address
}

// NamedEndpoint is the name of an endpoint and the address behind it.
type NamedEndpoint struct {
	Name, Address string
}

// NamedEndpoints are all endpoints of proxies, instances, clusters and the servers of clusters, also of
// those that are made: whoever keeps a list of names then has the name before anybody is told
// it. There are none where endpoints have no names.
func (c *Control) NamedEndpoints() []NamedEndpoint {
	list := []NamedEndpoint{}
	domain := c.View.EndpointDomain().Value
	if !domain.Named() {
		return list
	}
	add := func(name, address string) {
		if name != "" && address != "" {
			list = append(list, NamedEndpoint{name, address})
		}
	}
	for _, p := range c.ListProxies() {
		for _, e := range p.Endpoints() {
			add(c.ProxyEndpointName(e), e.Address)
		}
	}
	for _, stored := range c.View.Instances() {
		for _, of := range []*Control{c.of(false), c.of(true)} {
			for _, s := range of.shown(stored) {
				i := of.readShown(s)
				i.comeUp(stored)
				add(of.Endpoint(i), i.endpointAddress(false))
				if i.Spec.Cluster && i.Server == nil {
					add(of.ReaderEndpoint(i), i.endpointAddress(true))
				}
			}
		}
	}
	return list
}

// comeUp makes of what is still made what it is to be: with the addresses that were chosen
// for it, as one that is available.
func (i *Instance) comeUp(stored *store.Instance) {
	if i.Status.AvailableAt.IsZero() && len(stored.Assignments) > 0 {
		a := stored.Assignments[0].Value // every server of a group has the same endpoint
		i.Status.Address, i.Status.ReaderAddress, i.Status.AvailableAt = a.Address, a.ReaderAddress, i.Spec.CreatedAt
	}
	if i.Server != nil && i.Server.CreatedAt.IsZero() && i.Server.Address != "" {
		s := *i.Server
		s.CreatedAt = i.Spec.CreatedAt
		i.Server = &s
	}
}
