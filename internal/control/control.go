package control

import (
	"context"

	"kurabe"
	"kurabe/internal/control/eventsub"
	"kurabe/internal/control/installed"
	"kurabe/internal/control/network"
	"kurabe/internal/control/parameter"
	"kurabe/internal/control/placement"
	"kurabe/internal/control/proxy"
	"kurabe/internal/control/scope"
	"kurabe/internal/control/secret"
	"kurabe/internal/control/securitygroup"
	"kurabe/internal/logkey"
)

// Verifier turns a password into what an engine checks it with.
type Verifier func(password logkey.Secret) (string, error)

// Config is what a Control needs besides the store.
type Config struct {
	Authority Authority
	// Verifiers has one for each engine.
	Verifiers map[kurabe.EngineName]Verifier
	Logs      LogSource
	Secrets   secret.Secrets // those of instances and of clusters
	// RemoveMember takes a server out of those that hold the state, or says why it stays;
	// one that is out already is no error. nil where there is one server.
	RemoveMember func(context.Context, kurabe.JoinedHost) error
}

// Control is the use cases over one store, those of DB instances or, of Clusters, those of
// DB clusters: names are looked for among the ones or the others.
type Control struct {
	scope.Scope
	Config
	installed.Engines
	parameter.Groups
	network.Network
	securitygroup.Set
	placement.Places
	eventsub.Subscriptions
	proxy.Proxies
}

// New returns a Control.
func New(s scope.Scope, c Config) *Control { return assemble(scope.New(s), c) }

func assemble(s scope.Scope, c Config) *Control {
	engines := installed.Engines{Scope: s}
	of := &Control{
		Scope: s, Config: c, Engines: engines, Groups: parameter.Groups{Engines: engines},
		Network: network.Network{Scope: s}, Set: securitygroup.Set{Scope: s}, Places: placement.Places{Engines: engines},
	}
	of.Subscriptions = eventsub.Subscriptions{Scope: s, SourceExists: of.sourceExists}
	of.Proxies = proxy.Proxies{Network: of.Network, Find: of.proxyTarget}
	return of
}

// Clusters is the same use cases for DB clusters, their snapshots and their parameter groups,
// which have names of their own beside those of instances.
func (c *Control) Clusters() *Control { return c.of(true) }

func (c *Control) of(cluster bool) *Control {
	if c.Cluster == cluster {
		return c
	}
	return assemble(c.Of(cluster), c.Config)
}

// MarkerPage cuts one page out of a sorted list. marker is the name that the
// page starts after, max how many items; it returns the next marker, "" at the
// end.
func MarkerPage[T any](list []T, name func(T) string, marker string, max int) ([]T, string) {
	start := 0
	if marker != "" {
		for start < len(list) && name(list[start]) <= marker {
			start++
		}
	}
	list = list[start:]
	if len(list) <= max {
		return list, ""
	}
	return list[:max], name(list[max-1])
}
