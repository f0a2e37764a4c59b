package fleet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"sync"
	"time"

	"kurabe"
	"kurabe/internal/agent"
	"kurabe/internal/agent/endpoint"
	"kurabe/internal/engine"
	"kurabe/internal/engine/fake"
	"kurabe/internal/gateway"
	"kurabe/internal/hostlink"
	"kurabe/internal/pki"
	"kurabe/internal/store"
)

const (
	// fleetNetwork is where the further hosts of the fleet's service would have their
	// addresses; nothing listens at any. They have most memory, so pairs are placed there.
	fleetNetwork    = "10.66.0.0/16"
	fleetFarMemory  = 2 * fleetMemory
	fleetPartyValid = 24 * time.Hour
)

// fleetFarPools are the address pools of the further hosts, one each.
var fleetFarPools = []string{"10.66.0.0/20", "10.66.16.0/20"}

// fleetTerm is which election the fleet's service has won.
type fleetTerm struct {
	mu sync.Mutex // guards on
	on *hostlink.Election
}

func (t *fleetTerm) set(e *hostlink.Election) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.on = e
}

func (t *fleetTerm) elected() (hostlink.Election, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.on == nil {
		return hostlink.Election{}, false
	}
	return *t.on, true
}

// fleetLink is what the further hosts need of the service.
type fleetLink struct {
	dir    string
	kv     store.KV
	view   *store.View
	ca     *pki.CA
	log    *slog.Logger
	report kurabe.HostReport // of the service's own host, which has the catalogue
	term   fleetTerm
	server string // HOST:PORT of the links
	hosts  []*farHost
}

// listen has the service hear hosts, and judge who is silent.
func (f *fleetLink) listen(ctx context.Context, loops *sync.WaitGroup, link hostlink.Link) (*hostlink.Server, error) {
	identity, err := f.ca.ServerIdentity(string(fleetHost), fleetPartyValid)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(f.ca.PEM())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	f.server = l.Addr().String()
	server := hostlink.NewServer(hostlink.ServerConfig{Link: link, KV: f.kv, View: f.view, Identity: identity, Roots: roots,
		Elected: f.term.elected, Log: f.log, Now: time.Now})
	loops.Go(func() { _ = server.Serve(ctx, l) })
	loops.Go(func() { _ = server.Watch(ctx) })
	return server, nil
}

// join adds further hosts, as if they had been let in with a token.
func (f *fleetLink) join(ctx context.Context) error {
	var first *fake.Engine
	for n, pool := range fleetFarPools {
		h := &farHost{link: f, id: kurabe.HostID(fmt.Sprintf("host-far-%d", n+1)), conns: map[net.Conn]struct{}{}}
		if h.engine = fake.New(); first != nil {
			h.engine = first.Beside()
		} else {
			first = h.engine
		}
		h.engine.Host, h.engine.Boottime = h.id, hostlink.Boottime
		h.guards = farGuards{&fake.Guards{Engine: h.engine, Boottime: hostlink.Boottime}}
		cert, key, err := f.ca.Identity(pki.Party{Kind: pki.PartyAgent, ID: string(h.id)}, fleetPartyValid)
		if err == nil {
			h.identity, err = tls.X509KeyPair(cert, key)
		}
		if err != nil {
			return err
		}
		r := f.report
		r.Host, r.Zones, r.AddressPool, r.Network = h.id, fleetZones()[1+n:2+n], pool, fleetNetwork
		r.MemoryBytes, r.StorageBytes, r.FreeBytes = fleetFarMemory, fleetFarMemory, fleetFarMemory
		change := store.NewChange().PutJoinedHost(kurabe.JoinedHost{ID: h.id, Zones: r.Zones, JoinedAt: time.Now().UTC()}, 0).PutHost(r)
		for _, v := range r.Engines {
			change.PutCatalog(h.id, *f.view.Catalog(v.Engine, v.Version))
		}
		if _, err := change.Commit(ctx, f.kv); err != nil {
			return err
		}
		f.hosts = append(f.hosts, h)
		h.switchOn()
	}
	first.SetReach(func(from, to kurabe.HostID) (time.Duration, bool) { return 0, !f.off(from) && !f.off(to) })
	return nil
}

func (f *fleetLink) off(id kurabe.HostID) bool {
	for _, h := range f.hosts {
		if h.id == id {
			return h.isOff()
		}
	}
	return false
}

// farHost is a machine with an agent that speaks over the network, and a fake engine.
type farHost struct {
	link     *fleetLink
	id       kurabe.HostID
	engine   *fake.Engine
	guards   farGuards
	identity tls.Certificate
	boots    int
	stop     context.CancelFunc
	loops    sync.WaitGroup

	mu    sync.Mutex // guards the rest
	off   bool
	conns map[net.Conn]struct{} // to the service
}

func (h *farHost) isOff() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.off
}

// dial connects to the service, if the machine is on.
func (h *farHost) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.off {
		return nil, errors.Join(errors.New("the machine is off"), c.Close())
	}
	h.conns[c] = struct{}{}
	return c, nil
}

// switchOn starts the machine, which is off, with its agent.
func (h *farHost) switchOn() {
	h.mu.Lock()
	h.off = false
	h.mu.Unlock()
	h.boots++
	ctx, cancel := context.WithCancel(context.Background())
	h.stop = cancel
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(h.link.ca.PEM())
	log := h.link.log.With("at", string(h.id))
	link := hostlink.NewRemote(hostlink.RemoteConfig{Server: h.link.server, Roots: roots, Life: fmt.Sprintf("boot-%d", h.boots),
		Identity: func() *tls.Certificate { return &h.identity }, Dial: h.dial, Log: log})
	leases := hostlink.NewLeases(hostlink.Boottime)
	a := agent.New(agent.Config{
		Host: h.id, Link: link, Homes: filepath.Join(h.link.dir, string(h.id), "instances"), Engines: map[kurabe.EngineName]engine.Engine{kurabe.Postgres: h.engine},
		Usage: func(kurabe.InstanceID) (int64, error) { return 40 << 20, nil }, Log: log, Now: time.Now, Boottime: hostlink.Boottime, Leases: leases, Guards: h.guards,
		Endpoint: endpoint.Config{Open: func(netip.AddrPort) (endpoint.Endpoint, error) { return farEndpoint{}, nil }},
	})
	h.loops.Go(func() { _ = leases.Beat(ctx, link.Alive) })
	h.loops.Go(func() { _ = a.Run(ctx) })
	h.loops.Go(func() {
		if a.WaitLooked(ctx) == nil {
			leases.Looked()
		}
	})
}

// switchOff ends all that is on the machine at once: its word to the service, its network, its
// servers, and then the agent, which has started nothing any more when this returns.
func (h *farHost) switchOff(servers []kurabe.InstanceID) {
	h.mu.Lock()
	h.off = true
	for c := range h.conns {
		_ = c.Close() // nobody is at this end any more
	}
	clear(h.conns)
	h.mu.Unlock()
	h.stop()
	for range 2 { // the agent may have been about to start one
		for _, id := range servers {
			h.engine.Crash(id)
		}
		h.loops.Wait()
	}
	h.guards.Gone()
}

// farEndpoint is one that no client comes to.
type farEndpoint struct{}

// Follow implements endpoint.Endpoint.
func (farEndpoint) Follow(gateway.Route) error { return nil }

// Close implements endpoint.Endpoint.
func (farEndpoint) Close() error { return nil }

// Leave implements endpoint.Endpoint.
func (farEndpoint) Leave() error { return nil }
