package postgres

import (
	"net/netip"
	"time"

	"kurabe/internal/proxy"
	"kurabe/internal/proxy/eventloop"
	"kurabe/internal/proxy/pool"
	"kurabe/internal/wire/pg"
)

// gatherMax bounds a message that is looked at as a whole. Larger ones flow.
const gatherMax = 64 << 10

type phase uint8

const (
	starting phase = iota // before the startup message
	shaking               // the TLS handshake
	proving               // SCRAM
	greeted
	cancelling // a connection that asks for a cancellation
	serving
)

// client is a client's connection and its session.
type client struct {
	f     *Frontend
	conn  *eventloop.Conn
	place int // in f.clients
	id    uint64
	key   uint64 // for cancellations
	from  netip.AddrPort
	tls   bool
	phase phase
	since time.Time // of its state
	login *login    // until it is served
	of    pool.Key

	server *server
	last   *pool.Server
	waiter pool.Waiter

	passing   int         // bytes of a message that flow to the server
	dropping  bool        // they do not
	scanning  *pg.Scanner // of a text that flows
	due       bool        // it has server for a message that it has not sent yet
	restoring bool        // its settings are being set on server
	barrier   bool        // nothing is taken until the server has answered
	failing   *pg.Failure // of its next statement
	broken    broken
	skipping  bool // without a server, everything until Sync is dropped

	want, startup *settings
	touched       []string // settings that it may have changed
	touchedAll    bool
	pin           proxy.PinReason

	named     map[string]*statement
	unnamed   unnamed
	forgotten []forgotten // by the query that is under way
	bound     pg.Marks    // of the statement that was bound last
	queries   uint64
	arrived   time.Time // the statement, which may have waited for a connection
	asked     time.Time // the server
}

// idle says that nothing is under way and no transaction open.
func (c *client) idle() bool {
	return !c.waiter.Waits() && c.passing == 0 && (c.server == nil || c.server.status == 'I' && c.server.pending.length == 0)
}

func (c *client) session() proxy.Session {
	s := proxy.Session{ID: c.id, From: c.from, User: c.of.User, Database: c.of.Database, TLS: c.tls, State: "idle", Since: c.since, Pin: c.pin, Queries: c.queries}
	switch {
	case c.waiter.Waits():
		s.State = "waiting"
	case c.server != nil:
		s.Connection = c.server.id
		if c.server.pending.length > 0 {
			s.State = "active"
		} else if c.server.status != 'I' {
			s.State = "in transaction"
		}
	}
	return s
}

// Data implements eventloop.Handler.
func (c *client) Data(_ *eventloop.Conn, data []byte) int {
	used := 0
	for c.phase != serving {
		if used == len(data) {
			return used
		}
		n := c.enter(data[used:])
		used += n
		if n == 0 || c.conn.Paused() || c.conn.Closed() {
			return used
		}
	}
	return used + c.serve(data[used:])
}

// serve takes messages of a client that is logged in.
func (c *client) serve(data []byte) int {
	used := 0
	for !c.conn.Paused() && !c.conn.Closed() {
		rest := data[used:]
		if c.passing > 0 {
			n := min(c.passing, len(rest))
			c.flow(rest[:n])
			used += n
			if c.passing > 0 {
				break
			}
			continue
		}
		if len(rest) < pg.HeaderBytes {
			break
		}
		kind, size, ok := pg.Header(rest)
		if !ok {
			c.violation("invalid message length")
			break
		}
		n := c.message(kind, size, rest)
		if n == 0 {
			break
		}
		used += n
	}
	if s := c.server; s != nil && s.Conn.Full() {
		c.conn.Pause(false)
	}
	return used
}

// flow carries a part of a message on.
func (c *client) flow(part []byte) {
	c.passing -= len(part)
	if c.scanning != nil {
		c.scanning.Feed(part)
	}
	if c.server != nil && !c.dropping {
		c.server.Conn.Write(part)
	}
	if c.passing == 0 && c.scanning != nil {
		c.effect(c.scanning.End())
		c.scanning = nil
	}
}

// start carries the beginning of a message on, and has its rest flow. It returns how much it
// has taken.
func (c *client) start(size int, rest []byte) int {
	n := min(size, len(rest))
	if c.server != nil {
		c.server.Conn.Write(rest[:n])
	}
	c.passing, c.dropping = size-n, false
	return n
}

// drop takes a message that the server would not look at.
func (c *client) drop(size int, rest []byte) int {
	n := min(size, len(rest))
	c.passing, c.dropping = size-n, true
	return n
}

// Drained implements eventloop.Handler: the client reads again.
func (c *client) Drained(*eventloop.Conn) {
	if c.server != nil {
		c.server.Conn.Resume()
	}
}

// Closed implements eventloop.Handler.
func (c *client) Closed(*eventloop.Conn, error) {
	c.f.pool.Leave(&c.waiter)
	if s := c.server; s != nil {
		c.server = nil
		s.abandoned()
	}
	for _, st := range c.named {
		st.release()
	}
	c.forgot(false)
	c.f.forget(c)
}

// fatal ends a client with a reason.
func (c *client) fatal(code, message string) {
	c.end(&pg.Failure{Severity: "FATAL", Code: code, Message: message})
}

func (c *client) end(failure *pg.Failure) {
	if c.phase != shaking && (c.server == nil || c.server.passing == 0) {
		c.conn.Write(pg.AppendFailure(c.f.scratch[:0], failure))
	}
	c.conn.Close()
}

func (c *client) violation(message string) { c.fatal("08P01", message) }

// acquire has a server for the client's next message, or pauses it until it has one.
func (c *client) acquire() bool {
	if c.server != nil {
		return true
	}
	c.since = c.f.loop.Now()
	c.arrived = c.since
	s := c.f.pool.Borrow(c.of, c.last, c.waits())
	if s == nil {
		c.conn.Pause(true)
		return false
	}
	return c.attach(s)
}

func (c *client) waits() *pool.Waiter {
	c.waiter.Borrower = c
	return &c.waiter
}

// attach gives the client a connection. It says false while settings are being set on it.
func (c *client) attach(p *pool.Server) bool {
	s := p.Session.(*server)
	c.server, s.client, c.last = s, c, p
	if c.phase == greeted {
		c.introduce()
		return false
	}
	c.due = true
	return c.restore()
}

// Borrowed implements pool.Borrower.
func (c *client) Borrowed(p *pool.Server) {
	if c.attach(p) {
		c.conn.Resume()
	}
}

// BorrowFailed implements pool.Borrower.
func (c *client) BorrowFailed(err error) {
	failure := borrowFailure(err)
	if c.phase == greeted {
		failure.Severity = "FATAL"
		c.f.counters.ClientsFailedAuth++
		c.end(failure)
		return
	}
	c.failing = failure
	c.conn.Resume()
}

// pinned notes why the client keeps its connection.
func (c *client) pinned(reason proxy.PinReason) {
	if c.pin != "" {
		return
	}
	c.pin = reason
	c.f.counters.Pins[reason]++
	c.f.logPin(c)
}
