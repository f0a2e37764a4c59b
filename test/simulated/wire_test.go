package simulated

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// service is the node of the network that is the service.
const serviceNode = "service"

// dialTime is how long a connection that nobody answers is tried.
const dialTime = 2 * time.Second

// wireTime is what it takes from one host to another one.
const wireTime = 2 * time.Millisecond

// wire is the network between nodes. What is sent over a connection that is cut arrives when it
// is joined again, as TCP has it, unless one end gives up first.
type wire struct {
	mu      sync.Mutex // guards the rest, and all connections
	cut     map[[2]string]bool
	delay   map[[2]string]time.Duration
	still   map[string]bool // nodes that do nothing, and reach nobody
	listens *listener       // the service's, nil while it is down
	conns   map[*pipe]struct{}
	changed chan struct{} // closed and replaced when anything of this changes
}

func newWire() *wire {
	return &wire{
		cut: map[[2]string]bool{}, delay: map[[2]string]time.Duration{}, still: map[string]bool{}, conns: map[*pipe]struct{}{}, changed: make(chan struct{}),
	}
}

func (w *wire) change(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do()
	w.changedLocked()
}

func (w *wire) changedLocked() {
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *wire) opensLocked(from, to string) bool {
	return !w.cut[[2]string{from, to}] && !w.still[from] && !w.still[to]
}

// reaches says whether what is sent arrives, and after what time.
func (w *wire) reaches(from, to string) (time.Duration, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return wireTime + w.delay[[2]string{from, to}], w.opensLocked(from, to)
}

// dial connects a node with the service.
func (w *wire) dial(ctx context.Context, from string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	for {
		w.mu.Lock()
		open := w.opensLocked(from, serviceNode) && w.opensLocked(serviceNode, from)
		changed, l := w.changed, w.listens
		w.mu.Unlock()
		switch {
		case open && l == nil:
			return nil, errors.New("connection refused")
		case open:
			near, far := w.pair(from, serviceNode)
			select {
			case l.accept <- far:
				return near, nil
			case <-l.closed:
				return nil, errors.New("connection refused")
			}
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-changed:
		}
	}
}

// listener is where the service is reached.
type listener struct {
	accept chan net.Conn
	closed chan struct{}
	once   sync.Once
	wire   *wire
}

func (w *wire) listen() *listener {
	l := &listener{accept: make(chan net.Conn), closed: make(chan struct{}), wire: w}
	w.change(func() { w.listens = l })
	return l
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accept:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *listener) Close() error {
	l.once.Do(func() {
		close(l.closed)
		l.wire.change(func() {
			if l.wire.listens == l {
				l.wire.listens = nil
			}
		})
	})
	return nil
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return address(serviceNode) }

type address string

// Network implements net.Addr.
func (a address) Network() string { return "tcp" }
func (a address) String() string  { return string(a) }

// pipe is one end of a connection: what it reads. The other end writes to it.
type pipe struct {
	w        *wire
	from, to string // of what is read
	other    *pipe
	got      []packet
	closed   bool // by this end
	ended    bool // by the other one, after what was sent
	deadline time.Time
}

type packet struct {
	data []byte
	at   time.Time
}

func (w *wire) pair(a, b string) (near, far *pipe) {
	near, far = &pipe{w: w, from: b, to: a}, &pipe{w: w, from: a, to: b}
	near.other, far.other = far, near
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns[near], w.conns[far] = struct{}{}, struct{}{}
	return near, far
}

// reset ends all connections of a node at once.
func (w *wire) reset(node string) {
	w.change(func() {
		for p := range w.conns {
			if p.from == node || p.to == node {
				p.closed = true
				delete(w.conns, p)
			}
		}
	})
}

// Read implements net.Conn.
func (p *pipe) Read(into []byte) (int, error) {
	for {
		p.w.mu.Lock()
		now, changed, deadline := time.Now(), p.w.changed, p.deadline
		n, wait, err := p.readLocked(into, now)
		p.w.mu.Unlock()
		if n > 0 || err != nil {
			return n, err
		}
		if !deadline.IsZero() && (wait == 0 || deadline.Sub(now) < wait) {
			wait = max(deadline.Sub(now), time.Nanosecond)
		}
		var late <-chan time.Time
		var timer *time.Timer
		if wait > 0 {
			timer = time.NewTimer(wait)
			late = timer.C
		}
		select {
		case <-changed:
		case <-late:
		}
		if timer != nil {
			timer.Stop()
		}
	}
}

func (p *pipe) readLocked(into []byte, now time.Time) (n int, wait time.Duration, err error) {
	switch {
	case p.closed:
		return 0, 0, net.ErrClosed
	case !p.deadline.IsZero() && !now.Before(p.deadline):
		return 0, 0, os.ErrDeadlineExceeded
	case !p.w.opensLocked(p.from, p.to):
		return 0, 0, nil
	case len(p.got) == 0 && p.ended:
		return 0, 0, io.EOF
	case len(p.got) == 0:
		return 0, 0, nil
	case p.got[0].at.After(now):
		return 0, p.got[0].at.Sub(now), nil
	}
	n = copy(into, p.got[0].data)
	if p.got[0].data = p.got[0].data[n:]; len(p.got[0].data) == 0 {
		p.got = p.got[1:]
	}
	return n, 0, nil
}

// Write implements net.Conn. It never waits.
func (p *pipe) Write(data []byte) (int, error) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	if p.closed {
		return 0, net.ErrClosed
	}
	at := time.Now().Add(p.w.delay[[2]string{p.to, p.from}])
	p.other.got = append(p.other.got, packet{append([]byte(nil), data...), at})
	p.w.changedLocked()
	return len(data), nil
}

// Close implements net.Conn.
func (p *pipe) Close() error {
	p.w.change(func() {
		p.closed, p.other.ended = true, true
		delete(p.w.conns, p)
	})
	return nil
}

// LocalAddr implements net.Conn.
func (p *pipe) LocalAddr() net.Addr { return address(p.to) }

// RemoteAddr implements net.Conn.
func (p *pipe) RemoteAddr() net.Addr { return address(p.from) }

// SetDeadline implements net.Conn.
func (p *pipe) SetDeadline(t time.Time) error { return p.SetReadDeadline(t) }

// SetReadDeadline implements net.Conn.
func (p *pipe) SetReadDeadline(t time.Time) error {
	p.w.change(func() { p.deadline = t })
	return nil
}

// SetWriteDeadline implements net.Conn: a write never waits.
func (p *pipe) SetWriteDeadline(time.Time) error { return nil }
