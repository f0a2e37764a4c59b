package eventloop

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"
)

// echo answers with what it was told, once a whole frame of some bytes is there.
type echo struct {
	frame  int
	closed chan error
}

func (e *echo) Data(c *Conn, data []byte) int {
	whole := len(data) / e.frame * e.frame
	c.Write(data[:whole])
	if c.Full() {
		c.Pause(false)
	}
	return whole
}

func (e *echo) Drained(c *Conn)           { c.Resume() }
func (e *echo) Closed(c *Conn, err error) { e.closed <- err }

// running starts a loop that ends with the test.
func running(t testing.TB) *Loop {
	t.Helper()
	l, err := New()
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- l.Run() }()
	t.Cleanup(func() {
		l.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return l
}

// serving has a loop take clients on an address of its own.
func serving(t testing.TB, l *Loop, taken func(c *Conn), handler func() Handler) string {
	t.Helper()
	socket, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	failed := make(chan error, 1)
	l.Do(func() {
		_, err := l.Listen(socket, func(fd int, from netip.AddrPort) {
			if !from.Addr().IsLoopback() {
				t.Errorf("the client's address is %v", from)
			}
			c, err := l.Adopt(fd, handler())
			if err != nil {
				t.Error(err)
				return
			}
			taken(c)
		})
		failed <- err
	})
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
	return socket.Addr().String()
}

func dial(t testing.TB, address string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	return c
}

// says sends much while it reads the echo, which has to be the same.
func says(t *testing.T, c net.Conn, size int) {
	t.Helper()
	sent := make([]byte, size)
	_, _ = rand.Read(sent)
	go func() { _, _ = c.Write(sent) }()
	got := make([]byte, size)
	if _, err := io.ReadFull(c, got); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(sent, got) {
		t.Fatal("the echo differs")
	}
}

func TestEchoes(t *testing.T) {
	for name, frame := range map[string]int{"bytes": 1, "frames": 1000, "large frames": 40_000} {
		t.Run(name, func(t *testing.T) {
			l, e := running(t), &echo{frame: frame, closed: make(chan error, 1)}
			c := dial(t, serving(t, l, func(*Conn) {}, func() Handler { return e }))
			says(t, c, frame)
			says(t, c, 2_000_000/frame*frame)
			c.Close()
			if err := <-e.closed; err != io.EOF {
				t.Errorf("closed with %v", err)
			}
		})
	}
}

func TestSlowReaderIsBounded(t *testing.T) {
	l, e := running(t), &echo{frame: 1, closed: make(chan error, 1)}
	var server *Conn
	accepted := make(chan struct{})
	c := dial(t, serving(t, l, func(c *Conn) { server = c; close(accepted) }, func() Handler { return e }))
	<-accepted
	// Nobody reads until the loop has stopped reading: until a write takes no more.
	block := make([]byte, 1<<20)
	sent := 0
	for {
		_ = c.SetWriteDeadline(time.Now().Add(time.Second))
		n, err := c.Write(block)
		sent += n
		if err != nil {
			break
		}
	}
	waiting := make(chan int, 1)
	l.Do(func() { waiting <- cap(server.out) })
	if n := <-waiting; n > 512<<10 {
		t.Errorf("%d bytes are held for a client that does not read", n)
	}
	if n, err := io.CopyN(io.Discard, c, int64(sent)); err != nil {
		t.Fatalf("%d of %d bytes came back: %v", n, sent, err)
	}
}

// waiter leaves everything until it is told to go on.
type waiter struct {
	got    chan []byte
	closed chan error
	ready  atomic.Bool
}

func (w *waiter) Data(c *Conn, data []byte) int {
	if !w.ready.Load() {
		c.Pause(true)
		w.got <- nil
		return 0
	}
	w.got <- append([]byte(nil), data...)
	return len(data)
}
func (w *waiter) Drained(*Conn)           {}
func (w *waiter) Closed(_ *Conn, e error) { w.closed <- e }

func TestPausedKeepsAndHearsTheEnd(t *testing.T) {
	l, w := running(t), &waiter{got: make(chan []byte, 1), closed: make(chan error, 1)}
	var server *Conn
	address := serving(t, l, func(c *Conn) { server = c }, func() Handler { return w })
	c := dial(t, address)
	_, _ = c.Write([]byte("first"))
	<-w.got
	w.ready.Store(true)
	l.Do(func() { server.Resume() })
	if got := <-w.got; string(got) != "first" {
		t.Errorf("after Resume came %q", got)
	}
	w.ready.Store(false)
	_, _ = c.Write([]byte("second"))
	<-w.got
	c.Close()
	if err := <-w.closed; !errors.Is(err, ErrHungUp) {
		t.Errorf("closed with %v", err)
	}
}

func TestDetachedGoesOnElsewhere(t *testing.T) {
	one, other := running(t), running(t)
	w := &waiter{got: make(chan []byte, 1), closed: make(chan error, 1)}
	var server *Conn
	c := dial(t, serving(t, one, func(c *Conn) { server = c }, func() Handler { return w }))
	_, _ = c.Write([]byte("abc"))
	<-w.got
	e := &echo{frame: 1, closed: make(chan error, 1)}
	one.Do(func() {
		fd, kept, err := server.Detach()
		if err != nil || string(kept) != "abc" {
			t.Errorf("detached with %q, %v", kept, err)
		}
		other.Do(func() {
			if _, err := other.Adopt(fd, e); err != nil {
				t.Error(err)
			}
		})
	})
	says(t, c, 1000)
}

func TestManyConnectionsLeaveNothing(t *testing.T) {
	l, e := running(t), &echo{frame: 1, closed: make(chan error, 1000)}
	address := serving(t, l, func(*Conn) {}, func() Handler { return e })
	for range 200 {
		c := dial(t, address)
		says(t, c, 10)
		c.Close()
		<-e.closed
	}
	open := make(chan int, 1)
	l.Do(func() {
		n := 0
		for _, c := range l.conns {
			if c != nil {
				n++
			}
		}
		open <- n
	})
	if n := <-open; n != 1 {
		t.Errorf("%d connections are left beside the listener", n-1)
	}
}

func TestMessagesAreNotAllocatedFor(t *testing.T) {
	l, e := running(t), &echo{frame: 1, closed: make(chan error, 1)}
	c := dial(t, serving(t, l, func(*Conn) {}, func() Handler { return e }))
	message := make([]byte, 500)
	round := func() {
		if _, err := c.Write(message); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, message); err != nil {
			t.Fatal(err)
		}
	}
	round()
	if n := testing.AllocsPerRun(1000, round); n > 0.1 {
		t.Errorf("%v allocations a message", n)
	}
}

func BenchmarkEcho(b *testing.B) {
	l, e := running(b), &echo{frame: 1, closed: make(chan error, 1)}
	c := dial(b, serving(b, l, func(*Conn) {}, func() Handler { return e }))
	message := make([]byte, 100)
	for b.Loop() {
		_, _ = c.Write(message)
		_, _ = io.ReadFull(c, message)
	}
}
