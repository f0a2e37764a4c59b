package plan

import (
	"cmp"

	"kurabe"
)

// nameEndpoints fills in by which names clients reach a server, for its certificate, and
// which servers they can reach one by one.
func (d *draft) nameEndpoints(a *kurabe.Assignment) {
	a.Names, a.Topology = nil, nil
	domain, cluster := d.w.Domain, d.w.Spec.Cluster
	switch {
	case !domain.Named():
	case cluster:
		a.Names = []string{domain.Cluster(a.Name), domain.ClusterReader(a.Name), domain.Instance(kurabe.ServerName(a.Name, a.Instance))}
	default:
		a.Names = []string{domain.Instance(a.Name)}
	}
	if !a.Engine.ShowsTopology() {
		return
	}
	if !cluster {
		at := a.Address
		if domain.Named() {
			at = domain.Instance(a.Name)
		}
		a.Topology = []kurabe.TopologyServer{{ID: string(a.Instance.Owner()), Endpoint: at}}
		return
	}
	if d.group == nil {
		return
	}
	for _, m := range d.group.Members {
		if m.Leaving {
			continue
		}
		at := cmp.Or(m.ListensAt, a.Address)
		if domain.Named() {
			at = domain.Instance(kurabe.ServerName(a.Name, m.ID))
		}
		a.Topology = append(a.Topology, kurabe.TopologyServer{ID: kurabe.ServerResourceID(m.ID), Endpoint: at})
	}
}
