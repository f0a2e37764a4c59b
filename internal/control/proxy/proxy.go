package proxy

import (
	"context"
	"slices"
	"strings"
	"time"

	"kurabe"
	"kurabe/internal/control/network"
	"kurabe/internal/event"
	"kurabe/internal/store"
)

// Target is what a request about targets needs to know of an instance or a cluster.
type Target struct {
	ID      kurabe.InstanceID
	Name    string
	Cluster bool
	Engine  kurabe.EngineName
	State   kurabe.State
	Source  string // that it is a read replica of, "" of none
}

// Proxies is the use cases.
type Proxies struct {
	network.Network
	// Find finds an instance, or a cluster, by its name or ARN.
	Find func(name string, cluster bool) (Target, error)
}

// Proxy is the read model of one proxy: what Describe shows.
type Proxy struct {
	Spec   *kurabe.Proxy
	Status kurabe.ProxyStatus
	State  kurabe.ProxyState
}

// Endpoint is the read model of one endpoint.
type Endpoint struct {
	Proxy *Proxy
	Spec  *kurabe.ProxyEndpoint
	State kurabe.ProxyState
	// Address and Port are where it listens, zero until it does.
	Address string
	Port    int
}

func read(stored *store.Proxy) Proxy {
	p := Proxy{Spec: stored.Spec, State: kurabe.ProxyCreating}
	if stored.Status != nil {
		p.Status, p.State = *stored.Status, stored.Status.State
	}
	p.State = p.overtaken(p.State)
	return p
}

// overtaken is a state that was told of an earlier spec.
func (p *Proxy) overtaken(told kurabe.ProxyState) kurabe.ProxyState {
	switch {
	case p.Spec.Deleting != nil:
		return kurabe.ProxyDeleting
	case told == kurabe.ProxyAvailable && p.Status.SpecRevision < p.Spec.Revision:
		return kurabe.ProxyModifying
	}
	return told
}

// Endpoints are all endpoints of a proxy, the default one first.
func (p *Proxy) Endpoints() []Endpoint {
	list := make([]Endpoint, len(p.Spec.Endpoints))
	for n := range p.Spec.Endpoints {
		e := &p.Spec.Endpoints[n]
		told := p.Status.Endpoint(e.ID)
		list[n] = Endpoint{Proxy: p, Spec: e, State: p.overtaken(told.State), Address: told.Address, Port: told.Port}
	}
	return list
}

// Default says that the endpoint was made with its proxy.
func (e *Endpoint) Default() bool { return e.Spec == &e.Proxy.Spec.Endpoints[0] }

// Proxy returns a proxy by its name.
func (c Proxies) Proxy(name string) (Proxy, error) {
	stored, err := c.find(name)
	if err != nil {
		return Proxy{}, err
	}
	return read(stored), nil
}

// ListProxies returns every proxy, by name.
func (c Proxies) ListProxies() []Proxy {
	var list []Proxy
	for _, stored := range c.View.Proxies() {
		list = append(list, read(stored))
	}
	return list
}

func (c Proxies) find(name string) (*store.Proxy, error) {
	stored, ok := c.View.ProxyOfName(strings.ToLower(name))
	if !ok || stored.Spec.Name != strings.ToLower(name) {
		return nil, kurabe.Errorf(kurabe.CodeProxyNotFound, "DBProxy %s not found", name)
	}
	return stored, nil
}

// Ask is a new proxy as it is asked for; nil fields have RDS's defaults.
type Ask struct {
	Name                    string
	Engine                  kurabe.EngineName
	Auth                    []kurabe.ProxyAuth
	RoleARN                 string
	Subnets, SecurityGroups []string
	RequireTLS, Debug       bool
	IdleClientTimeoutS      *int
	Tags                    []kurabe.Tag
}

// CreateProxy stores the wish for a proxy with its default endpoint and its empty target group.
func (c Proxies) CreateProxy(ctx context.Context, ask Ask) (Proxy, error) {
	name, err := kurabe.FoldIdentifier("DBProxyName", ask.Name)
	if err != nil {
		return Proxy{}, err
	}
	now := c.Now().UTC()
	first, err := c.newEndpoint(kurabe.ProxyDefaultEndpoint, ask.Subnets, ask.SecurityGroups, now)
	if err != nil {
		return Proxy{}, err
	}
	spec := kurabe.Proxy{
		ID: kurabe.NewProxyID(), Name: name, Revision: 1, CreatedAt: now, UpdatedAt: now, Engine: ask.Engine, RoleARN: ask.RoleARN,
		Auth: ask.Auth, RequireTLS: ask.RequireTLS, DebugLogging: ask.Debug, IdleClientTimeoutS: kurabe.ProxyIdleClient,
		Pool: kurabe.DefaultProxyPool(), PoolUpdatedAt: now, Endpoints: []kurabe.ProxyEndpoint{first}, Tags: ask.Tags,
	}
	if ask.IdleClientTimeoutS != nil {
		spec.IdleClientTimeoutS = *ask.IdleClientTimeoutS
	}
	if err := c.check(&spec); err != nil {
		return Proxy{}, err
	}
	err = c.Create(ctx, func() (*store.Change, error) {
		revision := c.View.Revision()
		if _, taken := c.View.ProxyOfName(name); taken {
			return nil, nameTaken(name)
		}
		if len(c.View.Proxies()) >= kurabe.ProxiesMax {
			return nil, kurabe.Errorf(kurabe.CodeProxyQuota, "Cannot create more than %d DB proxies", kurabe.ProxiesMax)
		}
		return store.NewChange().CreateProxy(spec).RequireProxiesUnwritten(revision), nil
	})
	return Proxy{Spec: &spec, State: kurabe.ProxyCreating}, err
}

func nameTaken(name string) error {
	return kurabe.Errorf(kurabe.CodeProxyExists, "Cannot create the DBProxy because a DBProxy with the identifier %s already exists.", name)
}

// check checks what a proxy has of its own.
func (c Proxies) check(p *kurabe.Proxy) error {
	if err := kurabe.CheckProxy(p); err != nil {
		return err
	}
	ours := strings.Join([]string{"arn:aws:secretsmanager", c.Region, c.Account, "secret", ""}, ":")
	for _, a := range p.Auth {
		if len(a.SecretARN) <= len(ours) || !strings.HasPrefix(a.SecretARN, ours) {
			return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "SecretArn is not the ARN of a secret of this service, which begins with %s: %.200q", ours, a.SecretARN)
		}
	}
	return nil
}

// Edit is a change of a proxy; nil fields stay.
type Edit struct {
	Name, RoleARN      *string
	Auth               []kurabe.ProxyAuth
	RequireTLS, Debug  *bool
	IdleClientTimeoutS *int
	SecurityGroups     []string
}

// ModifyProxy stores a change of a proxy.
func (c Proxies) ModifyProxy(ctx context.Context, name string, edit Edit) (Proxy, error) {
	return c.change(ctx, name, func(stored *store.Proxy, p *kurabe.Proxy, change *store.Change) error {
		set(&p.RoleARN, edit.RoleARN)
		set(&p.RequireTLS, edit.RequireTLS)
		set(&p.DebugLogging, edit.Debug)
		set(&p.IdleClientTimeoutS, edit.IdleClientTimeoutS)
		if edit.Auth != nil {
			p.Auth = edit.Auth
		}
		if edit.SecurityGroups != nil {
			groups, err := c.securityGroups(edit.SecurityGroups)
			if err != nil {
				return err
			}
			p.Endpoints[0].SecurityGroups = groups
		}
		if edit.Name != nil {
			if err := c.rename(stored, p, *edit.Name, change); err != nil {
				return err
			}
		}
		change.AddEvent(event.ProxyModified.With(p.Name).Told(c.Now(), p.Name, string(p.ID)))
		return c.check(p)
	})
}

func (c Proxies) rename(stored *store.Proxy, p *kurabe.Proxy, to string, change *store.Change) error {
	folded, err := kurabe.FoldIdentifier("NewDBProxyName", to)
	if err != nil || folded == p.Name {
		return err
	}
	if _, taken := c.View.ProxyOfName(folded); taken {
		return nameTaken(folded)
	}
	change.ReleaseProxyName(stored, p.Name).TakeProxyName(folded, p.ID)
	p.Name = folded
	return nil
}

// set gives a field its new value, if there is one.
func set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

// DeleteProxy stores the wish that nothing of a proxy is left.
func (c Proxies) DeleteProxy(ctx context.Context, name string) (Proxy, error) {
	return c.change(ctx, name, func(_ *store.Proxy, p *kurabe.Proxy, _ *store.Change) error {
		p.Deleting = &kurabe.Deletion{At: c.Now().UTC()}
		return nil
	})
}

// ModifyProxyPool stores new bounds of the target group. Fields that edit leaves alone stay.
func (c Proxies) ModifyProxyPool(ctx context.Context, name string, edit func(*kurabe.ProxyPool)) (Proxy, error) {
	return c.change(ctx, name, func(_ *store.Proxy, p *kurabe.Proxy, change *store.Change) error {
		edit(&p.Pool)
		p.PoolUpdatedAt = c.Now().UTC()
		change.AddEvent(event.ProxyModified.With(p.Name).Told(c.Now(), p.Name, string(p.ID)))
		return kurabe.CheckProxyPool(p.Engine, p.Pool)
	})
}

// change decides on a copy of a proxy that is not being deleted, and stores it.
func (c Proxies) change(ctx context.Context, name string, edit func(*store.Proxy, *kurabe.Proxy, *store.Change) error) (out Proxy, err error) {
	err = c.Update(ctx, func() (*store.Change, error) {
		stored, err := c.find(name)
		if err != nil {
			return nil, err
		}
		if stored.Spec.Deleting != nil {
			return nil, kurabe.Errorf(kurabe.CodeInvalidProxyState, "DBProxy %s is in an unsupported state - DELETING", name)
		}
		next := *stored.Spec
		next.Endpoints = slices.Clone(next.Endpoints)
		next.Revision++
		next.UpdatedAt = c.Now().UTC()
		change := store.NewChange()
		if err := edit(stored, &next, change); err != nil {
			return nil, err
		}
		out = Proxy{Spec: &next}
		if stored.Status != nil {
			out.Status, out.State = *stored.Status, stored.Status.State
		} else {
			out.State = kurabe.ProxyCreating
		}
		out.State = out.overtaken(out.State)
		return change.PutProxy(next, stored.SpecMod), nil
	})
	return out, err
}

// EditProxyTags replaces the tags of a proxy, or of an endpoint where its id is given. Nothing else
// changes, so no status leads through it.
func (c Proxies) EditProxyTags(ctx context.Context, id string, edit func([]kurabe.Tag) ([]kurabe.Tag, error)) error {
	return c.Update(ctx, func() (*store.Change, error) {
		stored, at, ok := c.byID(id)
		if !ok {
			return nil, kurabe.Errorf(kurabe.CodeProxyNotFound, "%s not found.", c.ARN("db-proxy", id))
		}
		next := *stored.Spec
		next.Endpoints = slices.Clone(next.Endpoints)
		tags := &next.Tags
		if at >= 0 {
			tags = &next.Endpoints[at].Tags
		}
		var err error
		if *tags, err = edit(*tags); err != nil {
			return nil, err
		}
		return store.NewChange().PutProxy(next, stored.SpecMod), nil
	})
}

// ProxyTags returns the tags of the proxy or endpoint that has an id.
func (c Proxies) ProxyTags(id string) ([]kurabe.Tag, bool) {
	stored, at, ok := c.byID(id)
	switch {
	case !ok:
		return nil, false
	case at >= 0:
		return stored.Spec.Endpoints[at].Tags, true
	}
	return stored.Spec.Tags, true
}

// byID finds what an ARN names: a proxy, or with at >= 0 an endpoint of it.
func (c Proxies) byID(id string) (stored *store.Proxy, at int, ok bool) {
	for _, stored := range c.View.Proxies() {
		if string(stored.ID) == id {
			return stored, -1, true
		}
		at := slices.IndexFunc(stored.Spec.Endpoints, func(e kurabe.ProxyEndpoint) bool { return string(e.ID) == id })
		if at >= 0 {
			return stored, at, true
		}
	}
	return nil, 0, false
}

// newEndpoint is an endpoint in subnets and security groups that there are.
func (c Proxies) newEndpoint(name string, subnets, groups []string, now time.Time) (kurabe.ProxyEndpoint, error) {
	e := kurabe.ProxyEndpoint{ID: kurabe.NewProxyEndpointID(), Name: name, CreatedAt: now}
	var err error
	if e.Subnets, err = c.PlaceSubnets(subnets); err != nil {
		return e, asSubnets(err)
	}
	e.SecurityGroups, err = c.securityGroups(groups)
	return e, err
}
