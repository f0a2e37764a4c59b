package proxy

import (
	"context"
	"errors"
	"slices"
	"strings"

	"kurabe"
	"kurabe/internal/control/securitygroup"
	"kurabe/internal/event"
	"kurabe/internal/store"
)

// EndpointAsk is a new endpoint as it is asked for.
type EndpointAsk struct {
	Name                    string
	Reads                   bool
	Subnets, SecurityGroups []string
	Tags                    []kurabe.Tag
}

// CreateProxyEndpoint stores the wish for one more endpoint of a proxy.
func (c Proxies) CreateProxyEndpoint(ctx context.Context, proxy string, ask EndpointAsk) (Endpoint, error) {
	name, err := kurabe.FoldIdentifier("DBProxyEndpointName", ask.Name)
	if err != nil {
		return Endpoint{}, err
	}
	e, err := c.newEndpoint(name, ask.Subnets, ask.SecurityGroups, c.Now().UTC())
	if err != nil {
		return Endpoint{}, err
	}
	e.Reads, e.Tags = ask.Reads, ask.Tags
	if err := kurabe.CheckTags(e.Tags); err != nil {
		return Endpoint{}, err
	}
	p, err := c.change(ctx, proxy, func(_ *store.Proxy, p *kurabe.Proxy, change *store.Change) error {
		if err := c.endpointNameFree(name); err != nil {
			return err
		}
		if len(p.Endpoints) > kurabe.ProxyEndpointsMax {
			return kurabe.Errorf(kurabe.CodeProxyEndpointQuota, "Cannot create more than %d endpoints of a DB proxy", kurabe.ProxyEndpointsMax)
		}
		p.Endpoints = append(p.Endpoints, e)
		change.TakeProxyName(kurabe.ProxyEndpointKey(name), p.ID)
		change.AddEvent(event.ProxyEndpointCreated.With(name, p.Name).Told(c.Now(), p.Name, string(p.ID)))
		return nil
	})
	if err != nil {
		return Endpoint{}, err
	}
	list := p.Endpoints()
	return list[len(list)-1], nil
}

func (c Proxies) endpointNameFree(name string) error {
	if _, taken := c.View.ProxyOfName(kurabe.ProxyEndpointKey(name)); taken || name == kurabe.ProxyDefaultEndpoint {
		return kurabe.Errorf(kurabe.CodeProxyEndpointExists, "Cannot create the DBProxyEndpoint because a DBProxyEndpoint with the identifier %s already exists.", name)
	}
	return nil
}

// ListProxyEndpoints returns the endpoints of a proxy, "" for all, that have a name, "" for any. A proxy or
// an endpoint that is named must be there.
func (c Proxies) ListProxyEndpoints(proxy, name string) ([]Endpoint, error) {
	proxies := c.ListProxies()
	if proxy != "" {
		p, err := c.Proxy(proxy)
		if err != nil {
			return nil, err
		}
		proxies = []Proxy{p}
	}
	var list []Endpoint
	for n := range proxies {
		list = append(list, proxies[n].Endpoints()...)
	}
	if name == "" {
		return list, nil
	}
	folded := strings.ToLower(name)
	list = slices.DeleteFunc(list, func(e Endpoint) bool { return e.Spec.Name != folded })
	if len(list) == 0 {
		return nil, noEndpoint(name)
	}
	return list, nil
}

func noEndpoint(name string) error {
	return kurabe.Errorf(kurabe.CodeProxyEndpointNotFound, "DBProxyEndpoint %s not found", name)
}

// EndpointEdit is a change of an endpoint; nil fields stay.
type EndpointEdit struct {
	Name           *string
	SecurityGroups []string
}

// ModifyProxyEndpoint stores a change of an endpoint.
func (c Proxies) ModifyProxyEndpoint(ctx context.Context, name string, edit EndpointEdit) (Endpoint, error) {
	var at int
	p, err := c.changeEndpoint(ctx, name, func(stored *store.Proxy, p *kurabe.Proxy, n int, change *store.Change) error {
		at = n
		e := &p.Endpoints[n]
		if edit.SecurityGroups != nil {
			groups, err := c.securityGroups(edit.SecurityGroups)
			if err != nil {
				return err
			}
			e.SecurityGroups = groups
		}
		if edit.Name != nil {
			folded, err := kurabe.FoldIdentifier("NewDBProxyEndpointName", *edit.Name)
			if err != nil {
				return err
			}
			if folded != e.Name {
				if err := c.endpointNameFree(folded); err != nil {
					return err
				}
				change.ReleaseProxyName(stored, kurabe.ProxyEndpointKey(e.Name)).TakeProxyName(kurabe.ProxyEndpointKey(folded), p.ID)
				e.Name = folded
			}
		}
		change.AddEvent(event.ProxyEndpointModified.With(p.Name).Told(c.Now(), p.Name, string(p.ID)))
		return nil
	})
	if err != nil {
		return Endpoint{}, err
	}
	return p.Endpoints()[at], nil
}

// DeleteProxyEndpoint takes an endpoint off its proxy, and returns it as it was.
func (c Proxies) DeleteProxyEndpoint(ctx context.Context, name string) (Endpoint, error) {
	var gone Endpoint
	_, err := c.changeEndpoint(ctx, name, func(stored *store.Proxy, p *kurabe.Proxy, n int, change *store.Change) error {
		was := read(stored)
		gone = was.Endpoints()[n]
		gone.State = kurabe.ProxyDeleting
		p.Endpoints = slices.Delete(p.Endpoints, n, n+1)
		change.ReleaseProxyName(stored, kurabe.ProxyEndpointKey(gone.Spec.Name))
		change.AddEvent(event.ProxyEndpointDeleted.With(gone.Spec.Name, p.Name).Told(c.Now(), p.Name, string(p.ID)))
		return nil
	})
	return gone, err
}

// changeEndpoint changes the proxy that has an endpoint of that name, other than the default one.
func (c Proxies) changeEndpoint(ctx context.Context, name string, edit func(*store.Proxy, *kurabe.Proxy, int, *store.Change) error) (Proxy, error) {
	folded := strings.ToLower(name)
	if folded == kurabe.ProxyDefaultEndpoint {
		return Proxy{}, kurabe.Errorf(kurabe.CodeInvalidProxyEndpoint, "The default endpoint of a DB proxy is changed and deleted with its proxy")
	}
	of, ok := c.View.ProxyOfName(kurabe.ProxyEndpointKey(folded))
	if !ok {
		return Proxy{}, noEndpoint(name)
	}
	return c.change(ctx, of.Spec.Name, func(stored *store.Proxy, p *kurabe.Proxy, change *store.Change) error {
		at := slices.IndexFunc(p.Endpoints, func(e kurabe.ProxyEndpoint) bool { return e.Name == folded })
		if at < 0 {
			return noEndpoint(name)
		}
		return edit(stored, p, at, change)
	})
}

// asSubnets gives an error of subnets the code that RDS has for it with proxies.
func asSubnets(err error) error {
	var e *kurabe.Error
	if errors.As(err, &e) {
		return &kurabe.Error{Code: kurabe.CodeInvalidSubnet, Message: e.Message, Err: err}
	}
	return err
}

// securityGroups checks a list of security groups, none of which is the default one. Endpoints of
// proxies are not filtered, so it has to permit everything.
func (c Proxies) securityGroups(ids []string) ([]string, error) {
	only := c.SecurityGroupID()
	for _, id := range ids {
		if id != only {
			return nil, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "Invalid security group , groupId= %s, groupName=.", id)
		}
	}
	return []string{only}, securitygroup.Set{Scope: c.Scope}.CheckProxies()
}
