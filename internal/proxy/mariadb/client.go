package mariadb

import (
	"errors"
	"log/slog"
	"net/netip"
	"strconv"
	"time"

	"kurabe/internal/proxy"
	"kurabe/internal/proxy/eventloop"
	"kurabe/internal/proxy/pool"
	"kurabe/internal/wire/my"
)

// login is what a client says of itself.
type login struct {
	user, database string
	collation      byte
}

// client is a session of a client, and its connection's handler.
type client struct {
	f            *Frontend
	conn         *eventloop.Conn
	id           uint32
	from         netip.AddrPort
	place        int // in the frontend's list
	phase        phase
	tls          bool
	welcomed     bool
	since, moved time.Time // of the phase; the newest byte
	offered      uint64
	capabilities uint64
	collation    byte
	sequence     byte // of the next packet that the proxy writes
	scramble     [my.ScrambleBytes]byte
	switching    *[my.Ed25519ScrambleBytes]byte
	plugin       string
	wanted       login
	queries      uint64

	// The session.
	key        pool.Key
	state      *state
	status     uint16 // as it was told last
	statements map[uint32]*statement
	newest     uint32 // of statements
	pin        proxy.PinReason
	inserted   uint64 // LAST_INSERT_ID(), saved
	insertsAt  *server
	warnedAt   *server
	warnings   []byte // the answer to SHOW WARNINGS, saved before another client came
	clean      bool   // the newest statement left no warnings

	// The connection to a server.
	server     *server
	lastServer *pool.Server
	waiter     pool.Waiter
	holding    int  // statements that have a cursor or long data open
	oneShot    bool // SET TRANSACTION waits for the next one

	// The command that is under way.
	busy      bool
	command   byte
	meaning   meaning
	began     time.Time
	sent      time.Time
	statement *statement // prepared or executed
	refusal   *my.Error  // answers the next command
	broken    *my.Error  // the transaction's end that has not been told
	reread    bool       // the server's variables are to be read
	left      int        // bytes that are still to come of a packet
	continued bool       // a further packet of the command is to come
	dropping  bool       // the rest of the command goes nowhere
	file      bool       // the client sends a file
}

func (c *client) log() *slog.Logger { return c.f.settings.Log.With("client", c.id) }

func (c *client) waits() bool { return c.waiter.Waits() }

// write sends a packet of the proxy's own.
func (c *client) write(payload []byte) {
	c.conn.Write(my.AppendPacket(nil, c.sequence, payload))
	c.sequence++
}

func (c *client) writeOK() {
	ok := my.OK{Status: c.status}
	c.write(ok.Append(nil, c.capabilities&my.SessionTrack != 0))
}

// fatal tells the reason and ends the connection.
func (c *client) fatal(e *my.Error) {
	c.write(e.Append(nil))
	c.conn.Close()
}

// Data implements eventloop.Handler.
func (c *client) Data(conn *eventloop.Conn, data []byte) int {
	c.moved = c.f.loop.Now()
	used := 0
	for used < len(data) && !conn.Closed() && !conn.Paused() {
		n := 0
		switch {
		case c.phase != serving:
			n = c.loginData(data[used:])
			if c.phase == shakes {
				return used + n
			}
		case c.left > 0, c.continued, c.file:
			n = c.stream(data[used:])
		case c.busy:
			conn.Pause(true)
		default:
			n = c.take(data[used:])
		}
		if n == 0 {
			break
		}
		used += n
	}
	return min(used, len(data))
}

// stream passes on what belongs to a command or file whose head has been sent.
func (c *client) stream(data []byte) int {
	s := c.server
	if s == nil && !c.dropping {
		c.conn.Reset() // its connection to the server is gone, and the rest has no meaning
		return 0
	}
	if !c.dropping && s.Conn.Full() {
		c.conn.Pause(true)
		return 0
	}
	n := min(c.left, len(data))
	if c.left == 0 {
		if len(data) < my.HeaderBytes {
			return 0
		}
		length, _ := my.Header(data)
		n, c.left, c.continued = my.HeaderBytes, length, length == my.PayloadMax
		if c.file && length == 0 {
			c.file = false
		}
	} else {
		c.left -= n
	}
	if !c.dropping {
		s.Conn.Write(data[:n])
	}
	if c.left == 0 && !c.continued {
		c.dropping = false
	}
	return n
}

// Drained implements eventloop.Handler.
func (c *client) Drained(*eventloop.Conn) {
	c.moved = c.f.loop.Now()
	if s := c.server; s != nil && s.paused {
		s.paused = false
		s.Conn.Resume()
	}
}

// Closed implements eventloop.Handler.
func (c *client) Closed(_ *eventloop.Conn, err error) {
	c.f.pool.Leave(&c.waiter)
	c.leftInsertID(nil, false)
	c.leftWarnings(nil)
	if s := c.server; s != nil {
		if c.busy || c.left > 0 || c.continued || s.own != nil {
			s.lost = true
		}
		s.spoiled = true
		s.giveBack()
	}
	c.f.forget(c)
	if err != nil && c.phase == serving && c.f.settings.DebugLogging {
		c.log().Debug("a client has left", "error", err)
	}
}

// Borrowed implements pool.Borrower.
func (c *client) Borrowed(s *pool.Server) {
	c.lend(s)
	c.proceed()
}

// BorrowFailed implements pool.Borrower.
func (c *client) BorrowFailed(err error) {
	c.refusal = refused(err)
	c.proceed()
}

// refused is what a client is told when there is no connection for it.
func refused(err error) *my.Error {
	var e *my.Error
	if errors.As(err, &e) && !errors.Is(err, pool.ErrTimeout) {
		return e
	}
	return &my.Error{Number: 1040, State: "08004", Message: err.Error()}
}

// lend gives the client a connection.
func (c *client) lend(p *pool.Server) {
	s := p.Session.(*server)
	s.client, c.server = c, s
	if c.f.version == "" {
		c.f.learned(s)
	}
}

// proceed goes on with what waited for a server.
func (c *client) proceed() {
	c.moved = c.f.loop.Now()
	if c.phase == entering {
		c.open()
		return
	}
	c.conn.Resume()
}

// ready says whether the client has a connection in a state, and works towards it if not:
// then the command is looked at again when the next step has been made, or refused.
func (c *client) ready(want *state) bool {
	if c.refusal != nil {
		return false
	}
	s := c.server
	if s == nil {
		p := c.f.pool.Borrow(c.key, c.lastServer, &c.waiter)
		if p == nil {
			c.conn.Pause(true)
			return false
		}
		c.lend(p)
		s = c.server
	}
	switch {
	case s.own != nil:
	case s.inserts != nil && s.inserts != c:
		s.saveInsertID()
	case s.warned != nil && s.warned != c:
		s.saveWarnings()
	case s.state == want:
		return true
	case s.state.same(want):
		s.state = want
		return true
	default:
		s.bring(want)
	}
	c.conn.Pause(true)
	return false
}

// bring brings a connection into a state.
func (s *server) bring(want *state) {
	c := s.client
	set := func() {
		text := settings(s.state, want, s.fresh)
		if text == "" {
			s.state = want
			c.proceed()
			return
		}
		s.query(text, func(failure *my.Error) {
			if failure != nil {
				s.spoiled = true // some of them may be set
				c.refuse(failure)
				return
			}
			s.state = want
			c.proceed()
		})
	}
	if want.database == s.state.database {
		set()
		return
	}
	s.run(false, func(failure *my.Error) {
		if failure != nil {
			c.refuse(failure)
			return
		}
		s.state = s.state.in(want.database)
		set()
	}, my.ComInitDB, []byte(want.database))
}

// refuse answers the command that is under way with an error.
func (c *client) refuse(failure *my.Error) {
	c.refusal = failure
	c.release()
	c.proceed()
}

// saveInsertID takes note of a LAST_INSERT_ID() before it is overwritten. What an answer
// says of it is not enough: that is also a number which the client itself has inserted,
// after which LAST_INSERT_ID() is what it was, maybe another client's.
func (s *server) saveInsertID() {
	owner, c := s.inserts, s.client
	s.query("SELECT LAST_INSERT_ID()", nil)
	o := s.own
	o.then = func(failure *my.Error) {
		r := my.Reader{Rest: o.row}
		now, err := strconv.ParseUint(string(r.Text()), 10, 64)
		if failure != nil || err != nil {
			s.Conn.Reset()
			return
		}
		if s.sure || s.again || now != s.before {
			owner.inserted = now
		}
		s.before, s.again = now, false
		owner.leftInsertID(nil, false)
		c.proceed()
	}
}

// saveWarnings keeps the answer that the owner may ask for.
func (s *server) saveWarnings() {
	owner, c := s.warned, s.client
	s.run(true, nil, my.ComQuery, []byte("SHOW WARNINGS"))
	o := s.own
	o.then = func(failure *my.Error) {
		owner.leftWarnings(nil)
		if failure == nil && len(o.captured) < capturedMax {
			owner.warnings = o.captured
		}
		c.proceed()
	}
}

// release gives the connection back unless something holds it.
func (c *client) release() {
	s := c.server
	if s == nil {
		return
	}
	if c.pin != "" || c.status&my.InTransaction != 0 || c.holding > 0 || c.oneShot || c.meaning.leaves {
		return
	}
	if c.key.Database == "" && s.state.database != "" {
		s.lost = true // its schema cannot be left again
	}
	s.giveBack()
}

// pins keeps the connection until the client leaves or resets it.
func (c *client) pins(reason proxy.PinReason) {
	if reason == "" || c.pin != "" {
		return
	}
	c.pin = reason
	c.f.counters.Pins[reason]++
	connection := uint32(0)
	if c.server != nil {
		connection = c.server.thread
		c.server.spoiled = true
	}
	c.f.settings.Log.Warn("The client session was pinned to the database connection for the remainder of the session. The proxy can't reuse this connection until the session ends. Reason: "+reason.Words(),
		"proxyEndpoint", c.f.settings.Endpoint, "clientConnection", c.id, "dbConnection", connection)
}
