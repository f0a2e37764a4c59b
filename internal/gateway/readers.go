package gateway

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Spread says where the sessions of a reader endpoint may go.
type Spread struct {
	// Readers are the servers that clients are to read at. Otherwise is who takes them while
	// none of these does: the writer; the zero value for nobody.
	Readers   []netip.AddrPort
	Otherwise netip.AddrPort
}

// Readers is an address by which clients come to one of several servers: the one with the
// fewest sessions from here. A session stays where it is, also when its server is late or
// others are idle, but not at one that has become the writer while there are readers.
type Readers struct {
	o        Options
	listener *net.TCPListener
	ctx      context.Context
	end      context.CancelFunc
	done     sync.WaitGroup

	mu       sync.Mutex // guards the rest
	spread   Spread
	changed  chan struct{} // closed when spread changes
	sessions map[*session]netip.AddrPort
	turn     int // of the reader that is first among equals
	avoided  map[netip.AddrPort]time.Time
}

// avoidTime is how long a reader that could not be reached comes after the others.
const avoidTime = 2 * time.Second

// OpenReaders listens at an address. Clients are held until somebody can take them.
func OpenReaders(address netip.AddrPort, o Options) (*Readers, error) {
	ctx, end := context.WithCancel(context.Background())
	listener, err := listen(ctx, address)
	if err != nil {
		end()
		return nil, fmt.Errorf("reader endpoint %s: %w", address, err)
	}
	r := &Readers{o: o.orDefaults(), listener: listener, ctx: ctx, end: end, changed: make(chan struct{}),
		sessions: map[*session]netip.AddrPort{}, avoided: map[netip.AddrPort]time.Time{}}
	held := make(chan struct{}, r.o.HeldMax)
	r.done.Go(func() { accept(ctx, listener, func(client *net.TCPConn) { r.take(client, held) }) })
	return r, nil
}

// Address is where it listens.
func (r *Readers) Address() netip.AddrPort { return r.listener.Addr().(*net.TCPAddr).AddrPort() }

// Lead takes a new spread. Sessions with a server that writes now, and for which there is a
// reader, have ended when it returns: their clients came to read from others.
func (r *Readers) Lead(s Spread) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Equal(s.Readers, r.spread.Readers) && s.Otherwise == r.spread.Otherwise {
		return
	}
	r.spread = Spread{slices.Clone(s.Readers), s.Otherwise}
	for session, at := range r.sessions {
		if len(s.Readers) > 0 && at == s.Otherwise {
			session.cut()
			delete(r.sessions, session)
		}
	}
	close(r.changed)
	r.changed = make(chan struct{})
}

// Close ends the endpoint and its sessions.
func (r *Readers) Close() error {
	err := r.listener.Close()
	r.end()
	r.mu.Lock()
	for s := range r.sessions {
		s.cut()
	}
	clear(r.sessions)
	r.mu.Unlock()
	r.done.Wait()
	return err
}

// take begins a client's life, unless too many wait for a server already.
func (r *Readers) take(client *net.TCPConn, held chan struct{}) {
	select {
	case held <- struct{}{}:
		r.done.Go(func() { r.serve(client, func() { <-held }) })
	default:
		reset(client)
	}
}

// serve is a client's life.
func (r *Readers) serve(client *net.TCPConn, connected func()) {
	s := r.await(client)
	connected()
	if s == nil {
		reset(client)
		return
	}
	s.forward()
	r.mu.Lock()
	delete(r.sessions, s)
	r.mu.Unlock()
}

// await tries one server after the other until the time is up, nil when none takes the client.
func (r *Readers) await(client *net.TCPConn) *session {
	ctx, cancel := context.WithTimeout(r.ctx, r.o.HoldTime)
	defer cancel()
	for {
		order, changed := r.order()
		for _, at := range order {
			if s := r.try(ctx, client, at); s != nil {
				return s
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-time.After(dialPause):
		}
	}
}

// order is in which order servers are tried: readers by the number of their sessions, those
// that could not be reached lately last, and then whoever takes clients otherwise.
func (r *Readers) order() ([]netip.AddrPort, chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	count, now := map[netip.AddrPort]int{}, time.Now()
	for _, at := range r.sessions {
		count[at]++
	}
	order := slices.Clone(r.spread.Readers)
	if len(order) > 0 {
		r.turn++
		first := r.turn % len(order)
		order = append(order[first:], order[:first]...)
	}
	weight := func(at netip.AddrPort) int {
		if now.Before(r.avoided[at]) {
			return 1 << 30
		}
		return count[at]
	}
	slices.SortStableFunc(order, func(a, b netip.AddrPort) int { return weight(a) - weight(b) })
	if r.spread.Otherwise.IsValid() {
		order = append(order, r.spread.Otherwise)
	}
	return order, r.changed
}

// try joins a client with a server, nil when that does not take it, or is not to any more.
func (r *Readers) try(ctx context.Context, client *net.TCPConn, at netip.AddrPort) *session {
	server, err := reach(ctx, at, r.o.DialTime)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		if len(r.avoided) > len(r.spread.Readers) {
			clear(r.avoided) // of servers that are none any more
		}
		r.avoided[at] = time.Now().Add(avoidTime)
		return nil
	}
	delete(r.avoided, at)
	if r.ctx.Err() != nil || at != r.spread.Otherwise && !slices.Contains(r.spread.Readers, at) {
		reset(server)
		return nil
	}
	s := &session{client: client, server: server}
	r.sessions[s] = at
	return s
}
