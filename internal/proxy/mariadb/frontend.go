package mariadb

import (
	"net/netip"
	"sync/atomic"
	"time"

	"kurabe/internal/proxy"
	"kurabe/internal/proxy/eventloop"
	"kurabe/internal/proxy/pool"
	"kurabe/internal/wire/my"
)

const (
	loginTime    = 10 * time.Second // MariaDB's connect_timeout
	readTimeout  = 30 * time.Second // its net_read_timeout, for the rest of a command
	writeTimeout = 60 * time.Second // its net_write_timeout, for an answer

	// ticksAround is how many ticks a look at all clients takes.
	ticksAround = 10

	// killsMax bounds the KILLs that are under way at once: each has a connection of its own.
	killsMax = 4
)

// ids number the clients of all endpoints of the process. They begin where the ids of a
// server's own connections hardly come.
var ids atomic.Uint32

const firstID = 1 << 30

// Frontend serves the clients of one endpoint. It is a proxy.Frontend.
type Frontend struct {
	loop     *eventloop.Loop
	pool     *pool.Pool
	settings *proxy.Settings
	opener   *Opener // for KILLs
	counters proxy.Counters

	clients []*client // in no order
	byID    map[uint32]*client
	cursor  int // of the look at all clients
	kills   int
	scratch []byte

	version      string // of the servers; "" until the first connection
	capabilities uint64
	scout        *scout
	ungreeted    []*client // wait for the version

	stopping bool
	left     func()
}

// New serves with connections of p, whose opener is an Opener.
func New(loop *eventloop.Loop, p *pool.Pool, s *proxy.Settings) *Frontend {
	f := &Frontend{loop: loop, pool: p, settings: s, opener: NewOpener(s), byID: map[uint32]*client{}}
	f.counters.Pins = map[proxy.PinReason]uint64{}
	return f
}

// Apply implements proxy.Frontend.
func (f *Frontend) Apply(s *proxy.Settings) {
	f.settings = s
	f.opener.Apply(s)
}

// Accept implements proxy.Frontend.
func (f *Frontend) Accept(fd int, from netip.AddrPort) {
	f.counters.ClientsReceived++
	c := &client{
		f: f, id: firstID + ids.Add(1)%firstID, from: from, place: len(f.clients), status: my.Autocommit, state: &state{}, clean: true,
		since: f.loop.Now(), moved: f.loop.Now(),
	}
	c.waiter.Borrower = c
	conn, err := f.loop.Adopt(fd, c)
	if err != nil {
		return
	}
	c.conn = conn
	f.clients = append(f.clients, c)
	f.byID[c.id] = c
	switch {
	case f.stopping:
		c.fatal(&my.Error{Number: 1053, State: "08S01", Message: "The proxy is shutting down"})
	case len(f.clients) > f.settings.ClientsMax:
		c.fatal(&my.Error{Number: 1040, State: "08004", Message: "Too many connections"})
	case f.version == "":
		f.ungreeted = append(f.ungreeted, c)
		f.learn()
	default:
		c.greet()
	}
}

// scout borrows a connection to learn the servers' version from its greeting.
type scout struct {
	f      *Frontend
	waiter pool.Waiter
}

// learn looks for the version of the servers.
func (f *Frontend) learn() {
	if f.scout != nil {
		return
	}
	f.scout = &scout{f: f}
	f.scout.waiter.Borrower = f.scout
	for name := range f.settings.Users {
		if s := f.pool.Borrow(pool.Key{Reads: f.settings.Reads, User: name, Options: defaultOptions}, nil, &f.scout.waiter); s != nil {
			f.scout.Borrowed(s)
		}
		return
	}
	f.scout.BorrowFailed(nil)
}

// defaultOptions are those of a client that most drivers make.
const defaultOptions = uint64(defaultCollation) << collationShift

// Borrowed implements pool.Borrower.
func (o *scout) Borrowed(s *pool.Server) {
	o.f.learned(s.Session.(*server))
	o.f.pool.Return(s)
	o.f.greetAll()
}

// BorrowFailed implements pool.Borrower. The clients are greeted all the same: they are told
// the reason once they have logged in, or that their password is wrong.
func (o *scout) BorrowFailed(error) { o.f.greetAll() }

func (f *Frontend) learned(s *server) { f.version, f.capabilities = s.version, s.capabilities }

func (f *Frontend) greetAll() {
	f.scout = nil
	all := f.ungreeted
	f.ungreeted = nil
	for _, c := range all {
		if !c.conn.Closed() {
			c.greet()
		}
	}
}

// forget takes a client out of the books.
func (f *Frontend) forget(c *client) {
	last := len(f.clients) - 1
	f.clients[c.place] = f.clients[last]
	f.clients[c.place].place = c.place
	f.clients[last] = nil
	f.clients = f.clients[:last]
	delete(f.byID, c.id)
	f.counters.ClientsClosed++
	f.leave()
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
		if !c.conn.Closed() {
			c.tick(now)
		}
	}
}

func (c *client) tick(now time.Time) {
	still := now.Sub(c.moved)
	idle := c.f.settings.IdleClientTimeout
	switch {
	case c.phase == greeted && now.Sub(c.since) > loginTime:
		c.conn.Reset()
	case c.phase != serving:
	case c.server != nil && c.server.paused && still > writeTimeout:
		c.log().Warn("a client reads too slowly", "client", c.from)
		c.conn.Reset()
	case (c.left > 0 || c.continued || c.file || !c.busy && !c.waits() && c.conn.Kept() > 0) && !c.conn.Paused() && still > readTimeout:
		c.fatal(&my.Error{Number: 1159, State: "08S01", Message: "Got timeout reading communication packets"})
	case !c.busy && !c.waits() && c.status&my.InTransaction == 0 && idle > 0 && still > idle:
		c.fatal(&my.Error{Number: 4031, State: "HY000", Message: "The client was disconnected by the proxy because of inactivity"})
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
		if c.server != nil && c.status&my.InTransaction != 0 {
			n.InTransaction++
		}
		if c.server != nil && c.pin != "" {
			n.Pinned++
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

func (c *client) session() proxy.Session {
	s := proxy.Session{ID: uint64(c.id), From: c.from, User: c.key.User, Database: c.state.database, TLS: c.tls, State: "idle", Since: c.moved, Pin: c.pin, Queries: c.queries}
	switch {
	case c.waits():
		s.State = "waiting"
	case c.busy:
		s.State = "active"
	case c.server != nil && c.status&my.InTransaction != 0:
		s.State = "in transaction"
	}
	if c.server != nil {
		s.Connection = uint64(c.server.thread)
	}
	return s
}

// Stop implements proxy.Frontend.
func (f *Frontend) Stop(left func()) {
	f.stopping, f.left = true, left
	for _, c := range f.clients {
		if c.server == nil {
			c.fatal(&my.Error{Number: 1053, State: "08S01", Message: "The proxy is shutting down"})
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
