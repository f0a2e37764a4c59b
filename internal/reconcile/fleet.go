package reconcile

import (
	"time"

	"kurabe"
	"kurabe/internal/plan"
	"kurabe/internal/store"
)

// fleet is what the plans of one pass share: who holds which address and how
// much memory. It follows the plans made, so that two of one pass do not take
// the same address.
type fleet struct {
	view      *store.View
	hosts     []kurabe.HostReport
	closed    map[kurabe.HostID]string
	emptied   map[kurabe.HostID]string
	lost      map[kurabe.HostID]time.Time
	gone      map[kurabe.HostID]bool
	presence  map[kurabe.HostID]int64                       // the revision that lost is of, or an older one
	addresses map[string]kurabe.InstanceID                  // the instance, also of an address of one of its servers
	reserved  map[kurabe.HostID]map[kurabe.InstanceID]int64 // by server: each of an instance holds its class
	proxies   map[kurabe.HostID]map[kurabe.ProxyID]bool     // those that are there, and are to stay
	// linked are the instances of which the newest world tells beside its own, as they were read.
	linked map[kurabe.InstanceID]*store.Instance
}

func newFleet(view *store.View) *fleet {
	f := &fleet{view: view, hosts: view.Hosts(), addresses: map[string]kurabe.InstanceID{}, reserved: map[kurabe.HostID]map[kurabe.InstanceID]int64{}}
	f.linked, f.proxies = map[kurabe.InstanceID]*store.Instance{}, map[kurabe.HostID]map[kurabe.ProxyID]bool{}
	f.presence = map[kurabe.HostID]int64{}
	f.closed, f.lost, f.gone = map[kurabe.HostID]string{}, map[kurabe.HostID]time.Time{}, map[kurabe.HostID]bool{}
	f.emptied = map[kurabe.HostID]string{}
	for _, h := range f.hosts {
		f.presence[h.Host] = view.PresenceMod(h.Host) // before what is said: a newer one is a conflict
		if why := view.Closed(h.Host); why != "" {
			f.closed[h.Host] = why
		}
		if why := view.Emptied(h.Host); why != "" {
			f.emptied[h.Host] = why
		}
		if view.Gone(h.Host) {
			f.gone[h.Host] = true
		}
		if since := view.LostSince(h.Host); !since.IsZero() {
			f.lost[h.Host] = since
		}
	}
	for _, i := range append(view.Instances(), view.Leftovers()...) {
		for _, a := range i.Assignments {
			f.hold(i, a.Value)
		}
	}
	for _, p := range append(view.Proxies(), view.ProxyLeftovers()...) {
		for _, a := range p.Assignments {
			f.holdProxy(a.Value)
		}
	}
	return f
}

// hold notes what an assignment takes up. The memory is that of the largest
// class that the instance has or waits for, so that a change that was accepted
// finds its room.
func (f *fleet) hold(i *store.Instance, a kurabe.Assignment) {
	f.addresses[a.Address] = a.Instance.Owner()
	for _, address := range []string{a.ListensAt, a.ReaderAddress} {
		if address != "" {
			f.addresses[address] = a.Instance.Owner()
		}
	}
	if i.Spec == nil {
		return
	}
	var bytes int64
	names := []string{i.Spec.Now.Class}
	if i.Spec.Next != nil {
		names = append(names, i.Spec.Next.Class)
	}
	for _, name := range names {
		if class, ok := kurabe.FindClass(name); ok {
			bytes = max(bytes, class.MemoryBytes)
		}
	}
	if f.reserved[a.Host] == nil {
		f.reserved[a.Host] = map[kurabe.InstanceID]int64{}
	}
	f.reserved[a.Host][a.Instance] = bytes
}

// planned notes the outcome of a plan for those that follow in the same pass.
func (f *fleet) planned(i *store.Instance, r plan.Result) {
	if r.Assignment != nil {
		f.hold(i, *r.Assignment)
	}
	for _, a := range r.Members {
		f.hold(i, a)
	}
}

// world gathers what the plan of one instance may depend on.
func (f *fleet) world(i *store.Instance, now time.Time) plan.World {
	w := plan.World{Now: now.UTC(), Spec: i.Spec, Status: i.Status, Hosts: f.hosts, Closed: f.closed, Emptied: f.emptied, Lost: f.lost, RemovedHosts: f.gone,
		Addresses: map[string]bool{}, Reserved: map[kurabe.HostID]int64{}}
	f.linked = map[kurabe.InstanceID]*store.Instance{}
	addServers(i, &w)
	f.addGone(i, &w)
	f.addReplication(i, &w)
	if places(i, w) {
		f.addOthers(i.ID, &w)
	}
	if g, ok := f.view.ParameterGroup(kurabe.NameKey(i.Spec.ParameterGroup, i.Spec.Cluster)); ok {
		w.Parameters = &g.Value
	}
	version := i.Spec.Now.EngineVersion
	if i.Status != nil {
		version = i.Spec.Wanted(i.Status.AppliedNext).EngineVersion
		if applied := i.Status.Applied.EngineVersion; kurabe.CompareVersions(applied, version) > 0 {
			version = applied
		}
	}
	f.addSecurityGroups(i, &w)
	w.Domain = f.view.EndpointDomain().Value
	w.Catalog = f.view.Catalog(i.Spec.Engine, version)
	f.addSnapshots(i, &w)
	if o := i.Spec.Origin; o != nil {
		if s, ok := f.view.AnySnapshot(o.Snapshot); ok && s.Status != nil {
			w.OriginHost = s.Status.Host
		}
	}
	return w
}

// addOthers tells of the other instances, all servers of them; only placing needs them.
// What the instance's own servers hold is known to its plan.
func (f *fleet) addOthers(self kurabe.InstanceID, w *plan.World) {
	for address, id := range f.addresses {
		if id != self {
			w.Addresses[address] = true
		}
	}
	for host, held := range f.reserved {
		for id, bytes := range held {
			if id.Owner() != self {
				w.Reserved[host] += bytes
			}
		}
	}
}
