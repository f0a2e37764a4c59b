package simulated

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"kurabe"
	"kurabe/internal/agent"
	"kurabe/internal/agent/endpoint"
	"kurabe/internal/engine"
	"kurabe/internal/engine/fake"
	"kurabe/internal/hostlink"
)

// host is a machine with an agent.
type host struct {
	w        *world
	id       kurabe.HostID
	homes    string
	engine   *fake.Engine
	guards   *guards
	identity tls.Certificate
	rate     float64 // of its boottime
	agent    *life   // nil while none runs

	mu        sync.Mutex // guards the rest
	boot      int        // how often it was started
	booted    time.Time
	off       bool
	still     bool // nothing on it runs
	disk      disk
	spent     bool // the reserve of its disk is given up
	held      map[netip.Addr]bool
	endpoints map[netip.AddrPort]*heldEndpoint
	listens   map[kurabe.InstanceID]string // of each server, the address
}

// life is one process of a host's agent.
type life struct {
	gate
	cancel context.CancelFunc
	loops  sync.WaitGroup
	link   *hostlink.Remote
}

// boottime is the host's clock of leases.
func (h *host) boottime() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return int64(float64(time.Since(h.booted))*h.rate) + int64(time.Minute)
}

// until is how long it takes until that clock shows a moment.
func (h *host) until(moment int64) time.Duration {
	return max(time.Duration(float64(moment-h.boottime())/h.rate)+time.Microsecond, time.Microsecond)
}

func (h *host) isStill() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.still || h.off
}

func (h *host) listen(id kurabe.InstanceID, at string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listens[id] = at
}

// startAgent begins a life of the agent. None runs.
func (h *host) startAgent() {
	ctx, cancel := context.WithCancel(context.Background())
	l := &life{cancel: cancel}
	h.agent = l
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(h.w.ca.PEM())
	log := h.w.log.With("at", string(h.id))
	l.link = hostlink.NewRemote(hostlink.RemoteConfig{
		Server: "service:1", Roots: roots, Life: fmt.Sprintf("boot-%d", h.boot), Identity: func() *tls.Certificate { return &h.identity }, Log: log,
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) { return h.w.wire.dial(ctx, string(h.id)) },
	})
	leases := hostlink.NewLeases(h.boottime)
	c := agent.Config{
		Host: h.id, Link: l.link, Homes: h.homes, Log: log, Now: h.w.clockOf(string(h.id)), Boottime: h.boottime, Leases: leases, Guards: h.guards,
		Usage: h.usage, Free: h.free,
		Engines: map[kurabe.EngineName]engine.Engine{kurabe.Postgres: &driven{h.engine, h, l}, kurabe.MariaDB: &driven{h.engine, h, l}},
		Endpoint: endpoint.Config{
			Network: h.addresses(), Open: func(at netip.AddrPort) (endpoint.Endpoint, error) { return h.openEndpoint(at), nil },
			OpenReaders: func(netip.AddrPort) (endpoint.ReaderEndpoint, error) { return readers{}, nil },
		},
	}
	a := agent.New(c)
	l.loops.Go(func() {
		const within, patience = time.Second, time.Minute
		for ctx.Err() == nil {
			if err := l.link.Place(ctx, within, patience); err == nil || ctx.Err() == nil && !isDouble(err) {
				break // a service that is not reached keeps nobody from looking after databases
			}
		}
		l.loops.Go(func() { _ = leases.Beat(ctx, l.link.Alive) })
		l.loops.Go(func() { _ = a.Run(ctx) })
		if a.WaitLooked(ctx) == nil {
			leases.Looked()
		}
	})
}

// stopAgent ends it as a kill does.
func (h *host) stopAgent() {
	l := h.agent
	if l == nil {
		return
	}
	l.cancel()
	h.w.wire.reset(string(h.id))
	l.loops.Wait()
	h.agent = nil
}

func (h *host) servers() []kurabe.InstanceID {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Sorted(maps.Keys(h.listens))
}

// stand has the whole machine stand still, or go on.
func (h *host) stand(still bool) {
	h.w.wire.change(func() { h.w.wire.still[string(h.id)] = still })
	if h.agent != nil {
		h.agent.open(!still)
	}
	h.mu.Lock()
	h.still = still
	h.mu.Unlock()
	if !still {
		h.guards.GoOn() // its timer fires before anything else is done
	}
	for _, id := range h.servers() {
		if still {
			h.engine.Freeze(id)
		} else {
			h.engine.Thaw(id)
		}
	}
}

// powerOff ends everything on the machine.
func (h *host) powerOff() {
	h.w.wire.change(func() { h.w.wire.still[string(h.id)] = true })
	h.mu.Lock()
	h.off, h.still = true, false
	h.held, h.endpoints = map[netip.Addr]bool{}, map[netip.AddrPort]*heldEndpoint{}
	h.mu.Unlock()
	if h.agent != nil {
		h.agent.open(true)
	}
	h.stopAgent()
	h.guards.Gone()
	for _, id := range h.servers() {
		h.engine.Crash(id)
	}
}

// powerOn starts the machine anew.
func (h *host) powerOn() {
	h.mu.Lock()
	h.off = false
	h.boot++
	h.booted = time.Now()
	h.mu.Unlock()
	h.w.wire.change(func() { h.w.wire.still[string(h.id)] = false })
	h.startAgent()
}

// addresses is the host as endpoint.Network, nil of one whose addresses are all there.
func (h *host) addresses() endpoint.Network {
	if len(h.w.hosts) == 1 {
		return nil
	}
	return h
}

// Hold implements endpoint.Network.
func (h *host) Hold(a netip.Addr) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held[a] = true
	return nil
}

// Drop implements endpoint.Network.
func (h *host) Drop(a netip.Addr) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.held, a)
	return nil
}

// Held implements endpoint.Network.
func (h *host) Held() ([]netip.Addr, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.SortedFunc(maps.Keys(h.held), netip.Addr.Compare), nil
}

// Announce implements endpoint.Network.
func (h *host) Announce(a netip.Addr) error {
	h.w.announce(a, h)
	return nil
}
