package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Options bound what an endpoint does; zero values are the defaults.
type Options struct {
	// HoldTime is how long a client waits for a writer (10 s), HeldMax how many may (4096).
	HoldTime time.Duration
	HeldMax  int
	// DialTime bounds one attempt to reach the writer (500 ms).
	DialTime time.Duration
	// Shortcut spares clients the way through here, nil: none.
	Shortcut Shortcut
}

func (o Options) orDefaults() Options {
	if o.HoldTime == 0 {
		o.HoldTime = 10 * time.Second
	}
	if o.HeldMax == 0 {
		o.HeldMax = 4096
	}
	if o.DialTime == 0 {
		o.DialTime = 500 * time.Millisecond
	}
	return o
}

// dialPause is between two attempts to reach a writer that does not answer yet.
const dialPause = 20 * time.Millisecond

// Counts are what an endpoint has done so far; Sessions and Held are of now.
type Counts struct {
	Epoch          int64
	Sessions, Held int
	Accepted, Cut  int64 // cut: ended by a new epoch
	Refused        int64 // ended because no writer was there in time, or too many were held
	Shortcut       bool  // new sessions are the writer's own
}

// Endpoint is one address that clients connect to.
type Endpoint struct {
	o        Options
	listener *net.TCPListener
	address  netip.AddrPort
	ctx      context.Context
	end      context.CancelFunc
	done     sync.WaitGroup

	mu       sync.Mutex // guards the rest
	route    routed
	changed  chan struct{} // closed when route changes
	sessions map[*session]bool
	counts   Counts
}

// Open listens at an address. Clients are held until a route is told.
func Open(address netip.AddrPort, o Options) (*Endpoint, error) {
	ctx, end := context.WithCancel(context.Background())
	listener, err := listen(ctx, address)
	if err != nil {
		end()
		return nil, fmt.Errorf("endpoint %s: %w", address, err)
	}
	e := &Endpoint{o: o.orDefaults(), listener: listener, ctx: ctx, end: end, changed: make(chan struct{}), sessions: map[*session]bool{}}
	e.address = e.listener.Addr().(*net.TCPAddr).AddrPort()
	e.done.Go(func() {
		accept(ctx, listener, func(client *net.TCPConn) { e.done.Go(func() { e.serve(client) }) })
	})
	return e, nil
}

// Address is where it listens.
func (e *Endpoint) Address() netip.AddrPort { return e.address }

// Follow takes a route. Sessions of an older epoch have ended when it returns.
func (e *Endpoint) Follow(r Route) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	next, err := e.route.follow(r)
	if err != nil || next == e.route {
		return err
	}
	if next.Epoch > e.route.Epoch {
		if err := e.depose(); err != nil {
			return err
		}
	}
	if err := e.shorten(next.Route); err != nil {
		return err
	}
	if next.Epoch > e.route.Epoch {
		for s := range e.sessions {
			s.cut()
			e.counts.Cut++
		}
		clear(e.sessions)
	}
	e.route = next
	close(e.changed)
	e.changed = make(chan struct{})
	return nil
}

// Counts are of now.
func (e *Endpoint) Counts() Counts {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.counts
	c.Epoch, c.Sessions = e.route.Epoch, len(e.sessions)
	c.Shortcut = e.o.Shortcut != nil && e.o.Shortcut.Has(e.address)
	return c
}

// Close ends the endpoint and its sessions, but for those that are the writer's own.
func (e *Endpoint) Close() error {
	e.mu.Lock()
	e.route = routed{} // no client may have the shortcut set again
	var err error
	if e.o.Shortcut != nil {
		err = e.o.Shortcut.Clear(e.address)
	}
	e.mu.Unlock()
	return errors.Join(err, e.Leave())
}

// Leave ends what needs this process. New sessions still find the writer where the
// shortcut leads there without us.
func (e *Endpoint) Leave() error {
	err := e.listener.Close()
	e.end()
	e.mu.Lock()
	for s := range e.sessions {
		s.cut()
	}
	clear(e.sessions)
	e.mu.Unlock()
	e.done.Wait()
	return err
}

// serve is a client's life.
func (e *Endpoint) serve(client *net.TCPConn) {
	s := e.connect(client)
	if s == nil {
		reset(client)
		return
	}
	s.forward()
	e.mu.Lock()
	delete(e.sessions, s)
	e.mu.Unlock()
}

// connect waits for a writer and joins the client with it, nil when there is none in time.
func (e *Endpoint) connect(client *net.TCPConn) *session {
	e.mu.Lock()
	e.counts.Accepted++
	e.shortenAgain()
	full := e.counts.Held >= e.o.HeldMax
	if !full {
		e.counts.Held++
	}
	e.mu.Unlock()
	var s *session
	if !full {
		s = e.await(client)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !full {
		e.counts.Held--
	}
	if s == nil {
		e.counts.Refused++
	}
	return s
}

// await tries until the time is up.
func (e *Endpoint) await(client *net.TCPConn) *session {
	ctx, cancel := context.WithTimeout(e.ctx, e.o.HoldTime)
	defer cancel()
	for {
		e.mu.Lock()
		route, changed := e.route.Route, e.changed
		e.mu.Unlock()
		var again <-chan time.Time
		if route.Writer.IsValid() {
			if server, err := reach(ctx, route.Writer, e.o.DialTime); err == nil {
				if s := e.join(client, server, route); s != nil {
					return s
				}
				reset(server)
				continue // the route changed while we dialled
			}
			again = time.After(dialPause)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-again:
		}
	}
}

// join makes the session, unless the route that was dialled is over by now: the writer was
// deposed, or takes no new sessions.
func (e *Endpoint) join(client, server *net.TCPConn, dialled Route) *session {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.route.Route != dialled || e.ctx.Err() != nil {
		return nil
	}
	s := &session{client: client, server: server}
	e.sessions[s] = true
	return s
}
