package pool

import (
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"kurabe/internal/proxy/eventloop"
)

// bed is a loop with a pool, whose opener dials listeners that accept and say nothing.
type bed struct {
	t       testing.TB
	loop    *eventloop.Loop
	pool    *Pool
	refuse  atomic.Pointer[error]
	dialled atomic.Int64
	gone    chan *Server
}

func (b *bed) Open(key Key, address netip.AddrPort, deadline time.Time) (*Opened, error) {
	if err := b.refuse.Load(); err != nil {
		return nil, *err
	}
	b.dialled.Add(1)
	c, err := net.DialTimeout("tcp", address.String(), time.Until(deadline))
	if err != nil {
		return nil, err
	}
	return &Opened{Dialed: eventloop.NewDialed(c.(*net.TCPConn)), Handler: func(s *Server) eventloop.Handler { return &quiet{b, s} }}, nil
}

type quiet struct {
	bed    *bed
	server *Server
}

func (q *quiet) Data(_ *eventloop.Conn, data []byte) int { return len(data) }
func (q *quiet) Drained(*eventloop.Conn)                 {}
func (q *quiet) Closed(*eventloop.Conn, error) {
	q.server.Pool().Gone(q.server)
	q.bed.gone <- q.server
}

func newBed(t testing.TB, limits Limits) *bed {
	t.Helper()
	l, err := eventloop.New()
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{t: t, loop: l, gone: make(chan *Server, 100)}
	b.pool = New(l, b, limits)
	l.OnTick = b.pool.Tick
	ended := make(chan error, 1)
	go func() { ended <- l.Run() }()
	t.Cleanup(func() { l.Stop(); <-ended })
	return b
}

// on runs f on the loop's thread and waits for it.
func (b *bed) on(f func()) {
	b.t.Helper()
	done := make(chan struct{})
	b.loop.Do(func() { defer close(done); f() })
	<-done
}

func (b *bed) server() netip.AddrPort {
	b.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			b.t.Cleanup(func() { c.Close() })
		}
	}()
	return l.Addr().(*net.TCPAddr).AddrPort()
}

func (b *bed) follow(r Route) { b.t.Helper(); b.on(func() { b.pool.SetRoute(r) }) }

// borrower waits and tells.
type borrower struct {
	Waiter
	got    chan *Server
	failed chan error
}

func (b *borrower) Borrowed(s *Server)     { b.got <- s }
func (b *borrower) BorrowFailed(err error) { b.failed <- err }

func (b *bed) borrow(key Key) *borrower {
	b.t.Helper()
	w := &borrower{got: make(chan *Server, 1), failed: make(chan error, 1)}
	w.Borrower = w
	b.on(func() {
		if s := b.pool.Borrow(key, nil, &w.Waiter); s != nil {
			w.got <- s
		}
	})
	return w
}

func (b *borrower) await(t testing.TB) *Server {
	t.Helper()
	select {
	case s := <-b.got:
		return s
	case err := <-b.failed:
		t.Fatal(err)
	case <-time.After(time.Minute):
		t.Fatal("no connection within a minute")
	}
	return nil
}

var shop = Key{Database: "shop", User: "app"}

func TestOneServerForManyInOrder(t *testing.T) {
	b := newBed(t, Limits{MaxServers: 1, BorrowTimeout: time.Minute})
	b.follow(Route{Epoch: 1, Writer: b.server()})
	first := b.borrow(shop).await(t)
	var waiting []*borrower
	for range 10 {
		waiting = append(waiting, b.borrow(shop))
	}
	for i, w := range waiting {
		for _, other := range waiting[i:] {
			select {
			case <-other.got:
				t.Fatal("two clients have the only connection")
			default:
			}
		}
		b.on(func() { b.pool.Return(first) })
		if s := w.await(t); s != first {
			t.Fatal("another connection was opened")
		}
	}
	if n := b.dialled.Load(); n != 1 {
		t.Errorf("%d connections were opened", n)
	}
}

func TestTimeoutAndLeaving(t *testing.T) {
	b := newBed(t, Limits{MaxServers: 1, BorrowTimeout: 150 * time.Millisecond})
	b.follow(Route{Epoch: 1, Writer: b.server()})
	held := b.borrow(shop).await(t)
	late, left := b.borrow(shop), b.borrow(shop)
	b.on(func() { b.pool.Leave(&left.Waiter) })
	if err := <-late.failed; !errors.Is(err, ErrTimeout) {
		t.Errorf("failed with %v", err)
	}
	b.on(func() { b.pool.Return(held) })
	select {
	case <-left.got:
		t.Error("who had left was lent a connection")
	default:
	}
	var stats Stats
	b.on(func() { stats = b.pool.Stats() })
	if stats.Idle != 1 || stats.Waiting != 0 || stats.TimedOut != 1 {
		t.Errorf("%+v", stats)
	}
}

func TestNewEpochEndsAllAndServesOn(t *testing.T) {
	b := newBed(t, Limits{MaxServers: 5, BorrowTimeout: time.Minute})
	old, young := b.server(), b.server()
	b.follow(Route{Epoch: 1, Writer: old})
	lent := b.borrow(shop).await(t)
	idle := b.borrow(shop).await(t)
	b.on(func() { b.pool.Return(idle) })
	b.follow(Route{Epoch: 2})
	<-b.gone
	<-b.gone
	waits := b.borrow(shop)
	b.follow(Route{Epoch: 1, Writer: old})
	select {
	case <-waits.got:
		t.Fatal("a connection to the deposed primary")
	case <-time.After(300 * time.Millisecond):
	}
	b.follow(Route{Epoch: 3, Writer: young})
	if s := waits.await(t); s.Address != young || s == lent {
		t.Errorf("led to %v", s.Address)
	}
}

func TestRefusedFailsUnreachableWaits(t *testing.T) {
	b := newBed(t, Limits{MaxServers: 5, BorrowTimeout: time.Minute})
	b.follow(Route{Epoch: 1, Writer: b.server()})
	var refusal error = &Refused{errors.New("password authentication failed")}
	b.refuse.Store(&refusal)
	if err := <-b.borrow(shop).failed; !errors.Is(err, refusal) {
		t.Errorf("failed with %v", err)
	}
	unreachable := errors.New("connection refused")
	b.refuse.Store(&unreachable)
	w := b.borrow(shop)
	b.refuse.Store(nil)
	w.await(t)
}

// TestRoomForAnotherKind closes a connection of one user for the client of another, idle at
// once and busy after a while, and never has more than the limit.
func TestRoomForAnotherKind(t *testing.T) {
	b := newBed(t, Limits{MaxServers: 1, BorrowTimeout: time.Minute})
	b.follow(Route{Epoch: 1, Writer: b.server()})
	other := Key{Database: "shop", User: "other"}
	s := b.borrow(shop).await(t)
	b.on(func() { b.pool.Return(s) })
	s = b.borrow(other).await(t)
	w := b.borrow(shop)
	for s.Key == other {
		next := b.borrow(other) // there is always somebody of the same kind
		b.on(func() { b.pool.Return(s) })
		select {
		case s = <-w.got:
		case s = <-next.got:
		}
		var open int
		b.on(func() { open = b.pool.Stats().Servers + b.pool.Stats().Opening })
		if open > 1 {
			t.Fatalf("%d connections beside a limit of 1", open)
		}
	}
}

func TestReadersShare(t *testing.T) {
	b := newBed(t, Limits{MaxServers: 5, BorrowTimeout: time.Minute})
	one, two, writer := b.server(), b.server(), b.server()
	b.follow(Route{Epoch: 1, Writer: writer, Readers: []netip.AddrPort{one, two}})
	reads := Key{Reads: true, Database: "shop", User: "app"}
	count := map[netip.AddrPort]int{}
	var lent []*Server
	for range 6 {
		s := b.borrow(reads).await(t)
		lent = append(lent, s)
		count[s.Address]++
	}
	if count[one] != 3 || count[two] != 3 {
		t.Errorf("%v", count)
	}
	b.follow(Route{Epoch: 1, Writer: writer, Readers: []netip.AddrPort{two}})
	for range 3 {
		if s := <-b.gone; s.Address != one {
			t.Error("a session of a reader that stays has ended")
		}
	}
	_ = lent
}
