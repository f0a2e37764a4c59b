package proxy

import (
	"context"
	"slices"
	"strings"

	"kurabe"
	"kurabe/internal/event"
	"kurabe/internal/store"
)

// registrable are the states in which an instance can become a target: RDS's and those in which
// its server serves all the same.
var registrable = []kurabe.State{kurabe.StateAvailable, kurabe.StateModifying, kurabe.StateBackingUp, kurabe.StateCreating}

// CheckTargetGroup says that the only target group of a proxy is the default one; "" is none named.
func (c Proxies) CheckTargetGroup(proxy, group string) error {
	if _, err := c.find(proxy); err != nil {
		return err
	}
	if group != "" && !strings.EqualFold(group, kurabe.ProxyTargetGroup) {
		return kurabe.Errorf(kurabe.CodeProxyTargetGroup, "DBProxyTargetGroup %s not found for DBProxy %s", group, proxy)
	}
	return nil
}

// RegisterTarget has a proxy lead to an instance or a cluster.
func (c Proxies) RegisterTarget(ctx context.Context, name string, instances, clusters []string) (Proxy, error) {
	targets, err := c.targets(instances, clusters)
	if err != nil {
		return Proxy{}, err
	}
	if len(targets) != 1 {
		return Proxy{}, kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "A target group has one target: name one DB instance or one DB cluster, not %d", len(targets))
	}
	t := targets[0]
	return c.change(ctx, name, func(_ *store.Proxy, p *kurabe.Proxy, _ *store.Change) error {
		switch {
		case p.Target == t.ID:
			return kurabe.Errorf(kurabe.CodeProxyTargetExists, "%s %s is already registered with DBProxy %s", t.kind(), t.Name, p.Name)
		case p.Target != "":
			return kurabe.Errorf(kurabe.CodeProxyTargetExists, "DBProxy %s has a target already, and a target group has one: deregister it first", p.Name)
		}
		if err := t.check(p.Engine); err != nil {
			return err
		}
		p.Target = t.ID
		return nil
	})
}

// check says why an instance or a cluster cannot be the target of a proxy.
func (t Target) check(engine kurabe.EngineName) error {
	code := kurabe.CodeInvalidInstanceState
	if t.Cluster {
		code = kurabe.CodeInvalidClusterState
	}
	switch {
	case t.Engine != engine:
		return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "Unsupported Database engine or engine mode for %s: the engine family of the proxy is another one than that of %s", t.kind(), t.Engine)
	case !slices.Contains(registrable, t.State):
		return kurabe.Errorf(code, "%s %s is in an unsupported state - %s, needs to be in [%s]", t.kind(), t.Name, rdsState(t.State), strings.Join(rdsStates(registrable), ", "))
	case t.Source != "":
		return kurabe.Errorf(code, "%s %s is a read replica of %s: a proxy leads to a DB instance that accepts writes", t.kind(), t.Name, t.Source)
	}
	return nil
}

func rdsStates(list []kurabe.State) []string {
	out := make([]string, len(list))
	for n, s := range list {
		out[n] = rdsState(s)
	}
	return out
}

// rdsState is a state as RDS writes it in these errors, which tools look for.
func rdsState(s kurabe.State) string {
	return strings.ToUpper(strings.ReplaceAll(string(s), "-", "_"))
}

func (t Target) kind() string {
	if t.Cluster {
		return "DB Cluster"
	}
	return "DB Instance"
}

// DeregisterTargets takes targets off a proxy.
func (c Proxies) DeregisterTargets(ctx context.Context, name string, instances, clusters []string) error {
	targets, err := c.targets(instances, clusters)
	if err != nil {
		return err
	}
	if len(targets) == 0 {
		return kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "Name the DB instance or the DB cluster to deregister")
	}
	_, err = c.change(ctx, name, func(_ *store.Proxy, p *kurabe.Proxy, _ *store.Change) error {
		for _, t := range targets {
			if p.Target == "" || t.ID != p.Target {
				return kurabe.Errorf(kurabe.CodeProxyTargetNotFound, "%s %s is not registered with DBProxy %s", t.kind(), t.Name, p.Name)
			}
		}
		p.Target = ""
		return nil
	})
	return err
}

func (c Proxies) targets(instances, clusters []string) ([]Target, error) {
	var list []Target
	for n, name := range slices.Concat(instances, clusters) {
		t, err := c.Find(name, n >= len(instances))
		if err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	return list, nil
}

// ForgetTarget takes an instance or a cluster that is being deleted off the proxies that lead to it.
func (c Proxies) ForgetTarget(change *store.Change, t Target) {
	told := event.ProxyInstanceGone
	if t.Cluster {
		told = event.ProxyClusterGone
	}
	now := c.Now().UTC()
	for _, stored := range c.View.ProxiesOf(t.ID) {
		next := *stored.Spec
		next.Target, next.UpdatedAt = "", now
		next.Revision++
		change.PutProxy(next, stored.SpecMod)
		change.AddEvent(told.With(t.Name, kurabe.ProxyTargetGroup, next.Name).Told(now, next.Name, string(next.ID)))
	}
}

// Health is how the proxy sees a server of its target, or of an instance the server of it that
// writes: that it is being registered, until the proxy has told.
func (p *Proxy) Health(of kurabe.InstanceID, instance bool) kurabe.ProxyTargetHealth {
	for _, h := range p.Status.Targets {
		if h.Server == of || instance && !h.Reads {
			return h
		}
	}
	return kurabe.ProxyTargetHealth{Server: of, State: kurabe.TargetRegistering}
}
