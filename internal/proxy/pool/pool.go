package pool

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"kurabe/internal/proxy/eventloop"
)

// Key is what the clients of a connection have in common.
type Key struct {
	// Reads says that a reader will do.
	Reads    bool
	Database string
	User     string
	// Options are what else was agreed on at the login, as the protocol encodes it.
	Options uint64
}

// Route says where the servers are. A higher epoch replaces a lower one.
type Route struct {
	Epoch int64 `json:"epoch"`
	// Writer is invalid while there is none.
	Writer  netip.AddrPort   `json:"writer"`
	Readers []netip.AddrPort `json:"readers,omitempty"`
}

// Equal says whether two routes are the same. Within an epoch the writer becomes known later
// than the route without the deposed one, and readers come and go.
func (r Route) Equal(o Route) bool {
	return r.Epoch == o.Epoch && r.Writer == o.Writer && slices.Equal(r.Readers, o.Readers)
}

// Limits can be changed at any time.
type Limits struct {
	// MaxServers bounds the connections to the writer, and those to each reader. 0 is none.
	MaxServers int
	// MaxIdle bounds those that nobody has used for idleAfter.
	MaxIdle int
	// BorrowTimeout bounds how long a client waits.
	BorrowTimeout time.Duration
}

const (
	idleAfter  = 5 * time.Minute // RDS's: then a connection counts as idle
	ageMax     = 24 * time.Hour  // RDS's: then it is closed, once nobody uses it
	openTime   = 10 * time.Second
	backoffMin = 50 * time.Millisecond
	backoffMax = time.Second

	// owedAfter is how long a client waits for a connection of its own kind to come back
	// before one of another kind is closed to make room.
	owedAfter = 200 * time.Millisecond

	// openingMax bounds the logins that are under way at once, for each key.
	openingMax = 4
)

// Refused is the server's answer to a login. Trying again does not help.
type Refused struct{ Err error }

func (r *Refused) Error() string { return r.Err.Error() }
func (r *Refused) Unwrap() error { return r.Err }

// ErrTimeout says that no connection was free within the borrow timeout.
var ErrTimeout = errors.New("timed out waiting for a database connection")

// Opener opens connections.
type Opener interface {
	// Open dials and logs in. It runs in a goroutine of its own and gives up at the
	// deadline. A *Refused fails all who wait for the key.
	Open(key Key, address netip.AddrPort, deadline time.Time) (*Opened, error)
}

// Borrower is a client that waits for a connection.
type Borrower interface {
	Borrowed(*Server)
	BorrowFailed(error)
}

// Pool lends connections.
type Pool struct {
	loop   *eventloop.Loop
	opener Opener
	limits Limits
	route  Route
	groups map[Key]*group
	open   map[netip.AddrPort]int // connections to each address, those being opened included
	stats  Stats
}

// Stats counts since the start, but for the gauges.
type Stats struct {
	Servers, Idle, Borrowed, Opening, Waiting int // gauges
	Requests                                  uint64
	BorrowTime                                time.Duration // of all requests together
	Opened, Failed, TimedOut, Closed          uint64
}

// group is what has one key.
type group struct {
	key     Key
	idle    serverList
	waiting waiterList
	all     *Server // idle and borrowed
	servers int     // of all
	opening int
	backoff time.Duration
	retry   time.Time // nothing is opened before
	failure error     // of the newest attempt, nil after a success
}

// New gives a pool without a route: those who borrow wait.
func New(loop *eventloop.Loop, opener Opener, limits Limits) *Pool {
	return &Pool{loop: loop, opener: opener, limits: limits, groups: map[Key]*group{}, open: map[netip.AddrPort]int{}}
}

// SetLimits changes the limits. Connections beyond them are closed when they come back.
func (p *Pool) SetLimits(l Limits) {
	p.limits = l
	for _, g := range p.groups {
		p.openFor(g)
	}
}

// Stats counts.
func (p *Pool) Stats() Stats {
	s := p.stats
	for _, g := range p.groups {
		s.Idle += g.idle.length
		s.Servers += g.servers
		s.Opening += g.opening
		s.Waiting += g.waiting.length
	}
	s.Borrowed = s.Servers - s.Idle
	return s
}

// Route is the newest that was set.
func (p *Pool) Route() Route { return p.route }

// SetRoute follows a route, unless its epoch is lower. Connections that it does not name any
// more, or of an older epoch, end at once.
func (p *Pool) SetRoute(r Route) {
	if r.Epoch < p.route.Epoch {
		return
	}
	p.route = r
	for _, g := range p.groups {
		for s := g.all; s != nil; {
			next := s.nextOfAll
			if !p.named(s) {
				s.Conn.Reset()
			} else if s.idle && !p.leadsTo(s) {
				g.idle.remove(s)
				p.Discard(s)
			}
			s = next
		}
		g.retry, g.backoff = time.Time{}, 0
		p.openFor(g)
	}
}

// leadsTo says whether a connection is one that the route would give now.
func (p *Pool) leadsTo(s *Server) bool {
	if !s.Key.Reads || len(p.route.Readers) == 0 {
		return s.Epoch == p.route.Epoch && s.Address == p.route.Writer
	}
	for _, reader := range p.route.Readers {
		if reader == s.Address {
			return true
		}
	}
	return false
}

// named says whether a session may go on: a client that reads stays where it is until its
// transaction ends, as long as the server is one of the route's.
func (p *Pool) named(s *Server) bool {
	return p.leadsTo(s) || (s.Key.Reads && s.Epoch == p.route.Epoch && s.Address == p.route.Writer)
}

func (p *Pool) group(key Key) *group {
	g := p.groups[key]
	if g == nil {
		g = &group{key: key}
		p.groups[key] = g
	}
	return g
}

// Borrow lends a connection at once, or gives nil and has the waiter told later. last is the
// one that the client had before, or nil: it still knows the client's settings.
func (p *Pool) Borrow(key Key, last *Server, w *Waiter) *Server {
	p.stats.Requests++
	g := p.group(key)
	if g.waiting.length == 0 {
		s := g.idle.last
		if last != nil && last.idle && last.group == g {
			s = last
		}
		if s != nil {
			g.idle.remove(s)
			return s
		}
	}
	w.group, w.since = g, p.loop.Now()
	g.waiting.add(w)
	p.openFor(g)
	return nil
}

// Leave takes a client out of the queue.
func (p *Pool) Leave(w *Waiter) {
	if w.group != nil {
		w.group.waiting.remove(w)
		w.group = nil
	}
}

// Return takes a connection back that another client may use as it is.
func (p *Pool) Return(s *Server) {
	g := s.group
	if s.gone || s.Conn.Closed() {
		return
	}
	now := p.loop.Now()
	switch {
	case !p.leadsTo(s), now.Sub(s.Opened) > ageMax, p.open[s.Address] > p.limits.MaxServers, p.owed(g, s.Address, now):
		p.Discard(s)
		return
	}
	if w := g.waiting.first; w != nil {
		p.lend(g, w, s)
		return
	}
	s.Used = now
	g.idle.add(s)
}

func (p *Pool) lend(g *group, w *Waiter, s *Server) {
	g.waiting.remove(w)
	w.group = nil
	p.stats.BorrowTime += p.loop.Now().Sub(w.since)
	w.Borrower.Borrowed(s)
}

// Discard closes a connection that must not be used again. Gone follows from its handler.
func (p *Pool) Discard(s *Server) { s.Conn.Close() }

// Gone takes a connection out of the books, when its handler was told that it is closed.
func (p *Pool) Gone(s *Server) {
	if s.gone {
		return
	}
	s.gone = true
	g := s.group
	if s.idle {
		g.idle.remove(s)
	}
	g.forget(s)
	p.stats.Closed++
	p.left(s.Address)
}

// left gives the room of a connection to whoever waits.
func (p *Pool) left(address netip.AddrPort) {
	if p.open[address]--; p.open[address] <= 0 {
		delete(p.open, address)
	}
	p.openLongest()
}

// openLongest opens for the group whose client has waited longest, then for the others.
func (p *Pool) openLongest() {
	var longest *group
	for _, g := range p.groups {
		if g.waiting.first != nil && g.opening < g.waiting.length && (longest == nil || g.waiting.first.since.Before(longest.waiting.first.since)) {
			longest = g
		}
	}
	if longest != nil {
		p.openFor(longest)
	}
}

// owed says whether a group without a connection of its own has waited so long that this one
// should make room for it.
func (p *Pool) owed(mine *group, address netip.AddrPort, now time.Time) bool {
	if p.open[address] < p.limits.MaxServers {
		return false
	}
	for _, g := range p.groups {
		if g == mine || g.waiting.first == nil || g.opening > 0 || now.Sub(g.waiting.first.since) < owedAfter || now.Before(g.retry) {
			continue
		}
		if at, ok := p.choose(g.key); ok && at == address {
			return true
		}
	}
	return false
}

// Tick handles what has a deadline. The loop's OnTick calls it.
func (p *Pool) Tick(now time.Time) {
	for key, g := range p.groups {
		for w := g.waiting.first; w != nil && now.Sub(w.since) >= p.limits.BorrowTimeout; w = g.waiting.first {
			p.stats.TimedOut++
			p.fail(g, w, p.timeout(g))
		}
		p.openFor(g)
		for s := g.idle.first; s != nil; {
			next := s.next
			if now.Sub(s.Opened) > ageMax || (now.Sub(s.Used) > idleAfter && g.idle.length > 0 && p.idleCount() > p.limits.MaxIdle) {
				g.idle.remove(s)
				p.Discard(s)
			}
			s = next
		}
		if g.servers+g.opening+g.waiting.length == 0 && now.After(g.retry) {
			delete(p.groups, key)
		}
	}
}

func (p *Pool) idleCount() int {
	n := 0
	for _, g := range p.groups {
		n += g.idle.length
	}
	return n
}

// timeout says why there was no connection, as far as it is known.
func (p *Pool) timeout(g *group) error {
	if g.failure != nil {
		return fmt.Errorf("%w: %w", ErrTimeout, g.failure)
	}
	if _, ok := p.choose(g.key); !ok {
		return fmt.Errorf("%w: there is no server at the moment", ErrTimeout)
	}
	return ErrTimeout
}

func (p *Pool) fail(g *group, w *Waiter, err error) {
	g.waiting.remove(w)
	w.group = nil
	p.stats.BorrowTime += p.loop.Now().Sub(w.since)
	w.Borrower.BorrowFailed(err)
}
