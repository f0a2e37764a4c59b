package endpoint

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"net/netip"
	"sync"
	"time"

	"kurabe"
	"kurabe/internal/gateway"
	"kurabe/internal/logkey"
)

// Endpoint is an address that clients connect to and are led on from, as
// gateway.Endpoint.
type Endpoint interface {
	Follow(gateway.Route) error
	Close() error
	Leave() error
}

// Open holds an address.
type Open func(netip.AddrPort) (Endpoint, error)

// ReaderEndpoint is an address by which clients come to one of several servers, as
// gateway.Readers.
type ReaderEndpoint interface {
	Lead(gateway.Spread)
	Close() error
}

// OpenReaders holds the address of a reader endpoint.
type OpenReaders func(netip.AddrPort) (ReaderEndpoint, error)

func openReaders(address netip.AddrPort) (ReaderEndpoint, error) {
	r, err := gateway.OpenReaders(address, gateway.Options{})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Gateway holds the addresses of real clients. shortcut may be nil.
func Gateway(shortcut gateway.Shortcut) Open {
	return func(address netip.AddrPort) (Endpoint, error) {
		e, err := gateway.Open(address, gateway.Options{Shortcut: shortcut})
		if err != nil {
			return nil, err
		}
		return e, nil
	}
}

const (
	// retryPause is how soon an address is tried again that a deposed server still
	// holds: clients wait for it.
	retryPause = 50 * time.Millisecond
	// Linger is how long an endpoint stays without a writer when another server of
	// this host is about to write, as long as the gateway keeps a client. It spares clients
	// a refused connection.
	Linger = 10 * time.Second
	// reserveRetry is how soon the endpoint of an instance that is stopped is tried again.
	reserveRetry = 5 * time.Second
	// patience is after which time an address that cannot be held is logged.
	patience = 2 * time.Second
)

// Config is what a Table needs.
type Config struct {
	// Open holds the endpoints of writers that listen elsewhere; nil: by gateway.Open.
	Open Open
	// OpenReaders holds the reader endpoints of clusters; nil: by gateway.OpenReaders.
	OpenReaders OpenReaders
	// Network has the addresses that servers listen at; nil: all are there by themselves, as
	// loopback ones are.
	Network Network
	// Reserve holds addresses while no server has them; nil: nobody does.
	Reserve Reserve
	// Guarded says whether the lease of a writer holds at this moment; nil: each does.
	Guarded func(kurabe.InstanceID) bool
	Log     *slog.Logger
	Now     func() time.Time
}

// Table has the endpoints that this host holds for writers which listen elsewhere. Workers
// claim; one goroutine opens, leads and closes, so that no worker waits for an address.
type Table struct {
	Config
	Addresses *Addresses    // where endpoints and servers are
	wake      chan struct{} // capacity 1: the claims have changed

	mu     sync.Mutex // guards claims and stopped
	claims map[kurabe.InstanceID]map[kurabe.InstanceID]claim
	// stopped are the endpoints of instances whose servers here are all stopped.
	stopped map[kurabe.InstanceID]map[kurabe.InstanceID]netip.AddrPort

	reserved map[netip.AddrPort]io.Closer        // endpoints of those; of the goroutine of Run
	held     map[kurabe.InstanceID]*heldEndpoint // by instance; of the goroutine of Run
}

// heldEndpoint is the endpoint of one instance.
type heldEndpoint struct {
	endpoint  Endpoint // nil: the address is not held yet
	address   netip.AddrPort
	readers   ReaderEndpoint // nil: there is no reader endpoint, or its address is not held yet
	readersAt netip.AddrPort
	epoch     kurabe.Epoch // the highest one that was followed
	failing   time.Time    // since when the address cannot be held, zero: it can
	idle      time.Time    // since when it lingers, zero: it does not
	told      string       // the trouble that was logged
	since     time.Time    // it is held
	announced int          // of announcements, how often it was announced
	led       kurabe.Epoch // whose writer clients were led to, the newest; 0: to none yet
}

// New returns a Table; Run makes it act.
func New(c Config) *Table {
	e := &Table{
		Config: c, Addresses: &Addresses{of: c.Network, log: c.Log, want: map[string][]netip.Addr{}}, wake: make(chan struct{}, 1),
		claims: map[kurabe.InstanceID]map[kurabe.InstanceID]claim{}, held: map[kurabe.InstanceID]*heldEndpoint{},
		stopped: map[kurabe.InstanceID]map[kurabe.InstanceID]netip.AddrPort{}, reserved: map[netip.AddrPort]io.Closer{},
	}
	if e.Open == nil {
		e.Open = Gateway(nil)
	}
	if e.OpenReaders == nil {
		e.OpenReaders = openReaders
	}
	return e
}

// Claim takes note of a new assignment. Whether the server takes clients stays as it was
// while it is the same writer's.
func (e *Table) Claim(a kurabe.Assignment) {
	defer e.noteStopped(a)
	c, err := claimOf(a)
	if err != nil {
		e.Log.Error("could not serve an endpoint", logkey.Instance, a.Instance, logkey.Error, err)
	}
	if c == nil {
		e.Drop(a.Instance)
		return
	}
	e.change(a.Instance.Owner(), func(claims map[kurabe.InstanceID]claim) {
		old := claims[a.Instance]
		if old.holds && c.holds && old.epoch == c.epoch && old.server == c.server {
			c.open, c.pid = old.open, old.pid
		}
		if old.epoch == c.epoch && c.leased {
			c.lease = old.lease
		}
		claims[a.Instance] = *c
	})
}

// Takes says whether a server takes clients, as was seen under an assignment, and which
// process it is.
func (e *Table) Takes(id kurabe.InstanceID, generation kurabe.Generation, open bool, pid int) {
	e.change(id.Owner(), func(claims map[kurabe.InstanceID]claim) {
		if c, ok := claims[id]; ok && c.generation == generation {
			c.open, c.pid = open, pid
			claims[id] = c
		}
	})
}

// Lease says whether the lease of a writer of an epoch holds. That of another epoch says
// nothing of the one that is claimed.
func (e *Table) Lease(id kurabe.InstanceID, epoch kurabe.Epoch, holds bool) {
	e.change(id.Owner(), func(claims map[kurabe.InstanceID]claim) {
		if c, ok := claims[id]; ok && c.leased && c.epoch == epoch {
			c.lease = map[bool]LeaseState{true: LeaseHolds, false: LeaseOver}[holds]
			claims[id] = c
		}
	})
}

// Drop forgets a server.
func (e *Table) Drop(id kurabe.InstanceID) {
	e.mu.Lock()
	e.goneLocked(id)
	e.mu.Unlock()
	e.change(id.Owner(), func(claims map[kurabe.InstanceID]claim) { delete(claims, id) })
}

func (e *Table) change(owner kurabe.InstanceID, change func(map[kurabe.InstanceID]claim)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	before := e.claims[owner]
	after := maps.Clone(before)
	if after == nil {
		after = map[kurabe.InstanceID]claim{}
	}
	change(after)
	if maps.Equal(before, after) {
		return
	}
	if len(after) == 0 {
		delete(e.claims, owner)
	} else {
		e.claims[owner] = after
	}
	e.look()
}

// look has run look again.
func (e *Table) look() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// Run holds what is claimed until ctx ends. Then nothing that needs this process is left.
func (e *Table) Run(ctx context.Context) {
	defer func() {
		for owner, h := range e.held {
			e.end(owner, h, Endpoint.Leave)
		}
		for _, held := range e.reserved {
			_ = held.Close()
		}
	}()
	for {
		var again <-chan time.Time
		if pause := e.hold(); pause > 0 {
			again = time.After(pause)
		}
		select {
		case <-ctx.Done():
			return
		case <-e.wake:
		case <-again:
		}
	}
}

// hold makes all endpoints what they are to be, and says when to look again though nothing
// wakes it; 0: not at all.
func (e *Table) hold() (again time.Duration) {
	if e.reserveStopped() {
		again = reserveRetry
	}
	e.mu.Lock()
	claims := maps.Clone(e.claims) // the inner maps are never changed
	e.mu.Unlock()
	for owner := range e.held {
		if claims[owner] == nil {
			claims[owner] = map[kurabe.InstanceID]claim{}
		}
	}
	for owner, of := range claims {
		again = sooner(again, e.holdOne(owner, of))
	}
	return again
}

func (e *Table) holdOne(owner kurabe.InstanceID, claims map[kurabe.InstanceID]claim) (again time.Duration) {
	h := e.held[owner]
	if h == nil {
		h = &heldEndpoint{}
	}
	want := wantHeld(claims, h.epoch)
	now := e.Now()
	switch {
	case !want.keep, want.linger && h.endpoint == nil:
		e.close(owner, h)
		return 0
	case want.asItIs:
		return 0
	case want.linger:
		if h.idle.IsZero() {
			h.idle = now
		}
		if again = h.idle.Add(Linger).Sub(now); again <= 0 {
			e.close(owner, h)
			return 0
		}
	case h.endpoint != nil && (h.address != want.address || h.readersAt.IsValid() && h.readersAt != want.reader):
		e.close(owner, h)
		h = &heldEndpoint{epoch: h.epoch}
	}
	if !want.linger {
		h.idle = time.Time{}
	}
	e.held[owner] = h
	if h.endpoint == nil && !e.openOne(owner, h, want, now) {
		return retryPause
	}
	if want.reader.IsValid() && !e.lead(owner, h, want, now) {
		again = sooner(again, retryPause)
	}
	if err := h.endpoint.Follow(want.route); err != nil {
		e.trouble(owner, h, err)
		return again
	}
	h.epoch = kurabe.Epoch(want.route.Epoch)
	return sooner(again, e.announce(owner, h, want, now))
}

// sooner is the earlier of two moments to look again, 0 of which is none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// openOne tries to hold an address.
func (e *Table) openOne(owner kurabe.InstanceID, h *heldEndpoint, want held, now time.Time) bool {
	address := want.address
	err := e.Addresses.Hold(endpointOf(owner), want.addresses())
	var endpoint Endpoint
	if err == nil {
		endpoint, err = e.Open(address)
	}
	if err != nil {
		if h.failing.IsZero() {
			h.failing = now
		}
		if now.Sub(h.failing) >= patience {
			e.trouble(owner, h, err)
		}
		return false
	}
	h.endpoint, h.address, h.failing, h.told = endpoint, address, time.Time{}, ""
	h.since, h.announced = now, 0
	e.Log.Info("endpoint held", logkey.Instance, owner, logkey.Address, address)
	return true
}

// lead has the reader endpoint lead to the standbys, and says whether its address is held.
// Between two writers it is left as it is.
func (e *Table) lead(owner kurabe.InstanceID, h *heldEndpoint, want held, now time.Time) bool {
	if h.readers == nil {
		readers, err := e.OpenReaders(want.reader)
		if err != nil {
			if now.Sub(h.since) >= patience {
				e.trouble(owner, h, err)
			}
			return false
		}
		h.readers, h.readersAt = readers, want.reader
		e.Log.Info("reader endpoint served", logkey.Instance, owner, logkey.Address, want.reader)
	}
	h.readers.Lead(want.spread())
	return true
}

// trouble is logged once.
func (e *Table) trouble(owner kurabe.InstanceID, h *heldEndpoint, err error) {
	if text := err.Error(); text != h.told {
		h.told = text
		e.Log.Warn("endpoint does not lead to its primary", logkey.Instance, owner, logkey.Error, err)
	}
}

// close gives an endpoint up, if it is held.
func (e *Table) close(owner kurabe.InstanceID, h *heldEndpoint) {
	e.end(owner, h, Endpoint.Close)
	if err := e.Addresses.Hold(endpointOf(owner), nil); err != nil {
		e.trouble(owner, h, err)
	}
}

func (e *Table) end(owner kurabe.InstanceID, h *heldEndpoint, how func(Endpoint) error) {
	delete(e.held, owner)
	log := e.Log.With(logkey.Instance, owner, logkey.Address, h.address)
	if h.readers != nil {
		if err := h.readers.Close(); err != nil {
			log.Warn("reader endpoint not closed cleanly", logkey.Error, err)
		}
	}
	if h.endpoint == nil {
		return
	}
	if err := how(h.endpoint); err != nil {
		log.Warn("endpoint not closed cleanly", logkey.Error, err)
	}
	log.Info("endpoint removed")
}
