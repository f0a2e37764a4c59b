package reconcile

import (
	"context"
	"time"

	"kurabe"
	"kurabe/internal/logkey"
	"kurabe/internal/plan/proxy"
	"kurabe/internal/store"
)

// planProxies plans every proxy. There are few, and each depends on its target, on secrets and
// on hosts; so all are planned in every pass, after the instances: a failover of that pass is
// in their routes.
func (l *Loop) planProxies(ctx context.Context, term Term, fleet *fleet, now time.Time) {
	for _, p := range l.View.Proxies() {
		if ctx.Err() != nil {
			return
		}
		if i, ok := l.View.Any(p.Spec.Target); ok && l.leftAlone(i) {
			continue
		}
		l.planProxy(ctx, term, fleet, p.ID, now)
	}
}

func (l *Loop) planProxy(ctx context.Context, term Term, fleet *fleet, id kurabe.ProxyID, now time.Time) {
	if due, waits := l.again[id.Ref()]; waits && !now.Before(due) {
		delete(l.again, id.Ref())
	}
	p, ok := l.View.Proxy(id)
	if !ok {
		return
	}
	w := fleet.proxyWorld(p, now)
	result := proxy.Next(w)
	log := l.Log.With(logkey.Proxy, id)
	planned := func() {
		for _, a := range result.Assignments {
			fleet.holdProxy(a)
			log.Info("planned", logkey.Generation, a.Generation, logkey.Host, a.Host, logkey.Reason, result.Reasons)
		}
	}
	l.write(ctx, term, id.Ref(), result.LookAgain, proxyChange(p, result), log, planned)
}

// proxyChange is change for proxies.
func proxyChange(p *store.Proxy, r proxy.Result) *store.Change {
	change := store.NewChange()
	for _, e := range r.Events {
		change.AddEvent(e)
	}
	if r.Gone {
		return change.DeleteProxy(p)
	}
	if r.Status == nil && len(r.Assignments)+len(r.Withdrawn) == 0 {
		return change
	}
	change.RequireProxy(p.ID, p.SpecMod)
	if r.Status != nil {
		change.PutProxyStatus(*r.Status, p.StatusMod)
	}
	for _, a := range r.Assignments {
		have, _ := p.Assignment(a.Host)
		change.PutAssignment(a, have.ModRevision)
	}
	for _, host := range r.Withdrawn {
		have, _ := p.Assignment(host)
		change.DeleteAssignment(host, p.ID.Ref(), have.ModRevision)
	}
	return change
}

// holdProxy notes what an assignment of a proxy takes up.
func (f *fleet) holdProxy(a kurabe.ProxyAssignment) {
	for _, e := range a.Endpoints {
		f.addresses[e.Address] = kurabe.InstanceID(a.Proxy) // ids of all things differ
	}
	if f.proxies[a.Host] == nil {
		f.proxies[a.Host] = map[kurabe.ProxyID]bool{}
	}
	f.proxies[a.Host][a.Proxy] = !a.Absent
}

// proxyWorld gathers what the plan of one proxy may depend on.
func (f *fleet) proxyWorld(p *store.Proxy, now time.Time) proxy.World {
	w := proxy.World{
		Now: now.UTC(), Spec: p.Spec, Status: p.Status, Secrets: map[string]kurabe.SecretVersionID{}, Domain: f.view.EndpointDomain().Value,
		Hosts: f.hosts, Closed: f.closed, Lost: f.lost, Removed: f.gone, Addresses: map[string]bool{}, Proxies: map[kurabe.HostID]int{},
	}
	for _, a := range p.Assignments {
		o := proxy.Order{Assignment: a.Value}
		if r, ok := p.Report(a.Value.Host); ok {
			o.Report = &r
		}
		w.Orders = append(w.Orders, o)
	}
	for _, auth := range p.Spec.Auth {
		if s, ok := f.view.SecretByARN(auth.SecretARN); ok && s.Value.DeletedAt.IsZero() {
			if v, ok := s.Value.Staged(kurabe.StageCurrent); ok {
				w.Secrets[auth.SecretARN] = v.ID
			}
		}
	}
	for address, owner := range f.addresses {
		if owner != kurabe.InstanceID(p.ID) {
			w.Addresses[address] = true
		}
	}
	for host, all := range f.proxies {
		for id, there := range all {
			if there && id != p.ID {
				w.Proxies[host]++
			}
		}
	}
	w.Target = f.proxyTarget(p.Spec.Target)
	return w
}

// proxyTarget is nil of an instance that is not there, or is to go.
func (f *fleet) proxyTarget(id kurabe.InstanceID) *proxy.Target {
	i, ok := f.view.Instance(id)
	if !ok || i.Spec.Deleting != nil {
		return nil
	}
	t := &proxy.Target{Name: "db:" + i.Name(), Group: i.Group}
	if i.Spec.Cluster {
		t.Name = "cluster:" + i.Name()
	}
	for _, a := range i.Assignments {
		t.Assignments = append(t.Assignments, a.Value)
		if r, ok := i.ReportOf(a.Value.Instance); ok {
			t.Reports = append(t.Reports, r)
		}
	}
	return t
}
