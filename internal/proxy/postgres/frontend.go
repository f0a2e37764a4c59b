package postgres

import (
	"crypto/rand"
	"encoding/binary"
	"net/netip"
	"time"

	"kurabe/internal/proxy"
	"kurabe/internal/proxy/eventloop"
	"kurabe/internal/proxy/pool"
	"kurabe/internal/wire/pg"
	"kurabe/internal/wire/pg/scram"
)

const (
	// loginTime bounds a login, as the server's authentication_timeout does.
	loginTime = time.Minute

	// ticksAround is how many ticks a look at all clients takes.
	ticksAround = 10

	// greetingsMax bounds what is remembered of combinations of startup settings.
	greetingsMax = 1000
)

// Frontend serves the clients of one endpoint. It is a proxy.Frontend.
type Frontend struct {
	loop     *eventloop.Loop
	pool     *pool.Pool
	settings *proxy.Settings
	counters proxy.Counters

	clients    []*client // in no order
	keys       map[uint64]*client
	statements map[string]*statement // by text and types
	taken      *statement            // nothing, which can be prepared always
	greetings  map[string]*greeting
	verifiers  map[string]*scram.Keys // by user
	unknown    []byte                 // makes the salts of users that do not exist
	ids        uint64
	cursor     int // of the look at all clients
	scratch    []byte
	scanner    pg.Scanner

	stopping bool
	left     func()
}

// New serves with connections of p, whose opener is an Opener.
func New(loop *eventloop.Loop, p *pool.Pool, s *proxy.Settings) *Frontend {
	f := &Frontend{
		loop: loop, pool: p, keys: map[uint64]*client{}, statements: map[string]*statement{}, greetings: map[string]*greeting{},
		verifiers: map[string]*scram.Keys{}, unknown: make([]byte, 32),
	}
	rand.Read(f.unknown)
	f.taken = f.statementOf(make([]byte, 3), "", false)
	f.counters.Pins = map[proxy.PinReason]uint64{}
	f.Apply(s)
	return f
}

// Apply implements proxy.Frontend.
func (f *Frontend) Apply(s *proxy.Settings) {
	if f.settings != nil {
		for name, user := range f.settings.Users {
			if s.Users[name] != user {
				delete(f.verifiers, name)
			}
		}
	}
	f.settings = s
}

// Accept implements proxy.Frontend.
func (f *Frontend) Accept(fd int, from netip.AddrPort) {
	f.counters.ClientsReceived++
	f.ids++
	c := &client{f: f, id: f.ids, from: from, phase: starting, since: f.loop.Now(), place: -1}
	conn, err := f.loop.Adopt(fd, c)
	if err != nil {
		return
	}
	c.conn = conn
	c.place = len(f.clients)
	f.clients = append(f.clients, c)
	switch {
	case f.stopping:
		c.fatal("57P01", "the proxy is shutting down")
	case len(f.clients) > f.settings.ClientsMax+cancelsMax:
		// Cancellations come on connections of their own, hence the room beyond; whoever
		// is no cancellation is refused at the login.
		c.fatal("53300", "sorry, too many clients already")
	}
}

// cancelsMax is how many connections beyond ClientsMax may ask for something that is no session.
const cancelsMax = 100

// forget takes a client out of the books.
func (f *Frontend) forget(c *client) {
	last := len(f.clients) - 1
	f.clients[c.place] = f.clients[last]
	f.clients[c.place].place = c.place
	f.clients[last] = nil
	f.clients = f.clients[:last]
	if c.key != 0 {
		delete(f.keys, c.key)
	}
	f.counters.ClientsClosed++
	f.leave()
}

// register gives a client its key for cancellations.
func (f *Frontend) register(c *client) {
	var b [8]byte
	for c.key == 0 || f.keys[c.key] != nil {
		rand.Read(b[:])
		c.key = binary.BigEndian.Uint64(b[:])
	}
	f.keys[c.key] = c
}

// Tick implements proxy.Frontend. It looks at a part of the clients each time.
func (f *Frontend) Tick(now time.Time) {
	for range len(f.clients)/ticksAround + 1 {
		if f.cursor >= len(f.clients) {
			f.cursor = 0
			return
		}
		c := f.clients[f.cursor]
		f.cursor++
		since := now.Sub(c.since)
		switch {
		case c.conn.Closed():
		case c.phase != serving && since > loginTime:
			c.fatal("57014", "canceling authentication due to timeout")
		case c.phase == serving && c.idle() && f.settings.IdleClientTimeout > 0 && since > f.settings.IdleClientTimeout:
			c.fatal("57P05", "terminating connection due to idle client timeout")
		}
	}
}

// Count implements proxy.Frontend.
func (f *Frontend) Count() proxy.Counters {
	n := f.counters.Copy()
	n.Clients = len(f.clients)
	for _, c := range f.clients {
		if c.tls {
			n.ClientsTLS++
		}
		if s := c.server; s != nil {
			if s.status != 'I' || s.pending.length > 0 {
				n.InTransaction++
			}
			if c.pin != "" {
				n.Pinned++
			}
		}
	}
	return n
}

// Sessions implements proxy.Frontend.
func (f *Frontend) Sessions(most int) []proxy.Session {
	return proxy.HoldersFirst(func(yield func(proxy.Session) bool) {
		for _, c := range f.clients {
			if c.phase == serving && !yield(c.session()) {
				return
			}
		}
	}, most)
}

// Stop implements proxy.Frontend.
func (f *Frontend) Stop(left func()) {
	f.stopping, f.left = true, left
	for _, c := range f.clients {
		if c.server == nil {
			c.fatal("57P01", "terminating connection due to administrator command")
		}
	}
	f.leave()
}

func (f *Frontend) leave() {
	if f.stopping && len(f.clients) == 0 && f.left != nil {
		left := f.left
		f.left = nil
		left()
	}
}
