package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"kurabe/lab/load/raw"
)

// taskConn is a connection that anybody may use until a task enters it. From then on until
// it leaves, only the task reads and writes, and waits in its loop.
type taskConn struct {
	local, remote net.Addr

	// mu is held during each call with fd, so that the number is not somebody else's by then.
	mu      sync.RWMutex
	outside net.Conn // nil while a task has it
	fd      int      // while a task has it
	closed  bool

	// The rest is the task's and its loop's.
	task *task
	// readable says that there may be something to read. After a question there may: a server
	// on the same processor that has answered before its client went on. Looking first, as
	// libpq does, one client goes on to the end of its transaction; waiting for all of them
	// first, as many as are there take turns, and all end as late as the last.
	readable bool
}

// dialTask dials as dial does.
func dialTask(dial dialer) func(ctx context.Context, network, address string) (*taskConn, error) {
	return func(ctx context.Context, network, address string) (*taskConn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &taskConn{local: conn.LocalAddr(), remote: conn.RemoteAddr(), outside: conn}, nil
	}
}

// enter hands the connection over to a task that runs.
func (c *taskConn) enter(t *task) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || t.lost {
		return net.ErrClosed
	}
	has, ok := c.outside.(syscall.Conn)
	if !ok {
		return fmt.Errorf("take over a connection: %T has no descriptor", c.outside)
	}
	given, err := has.SyscallConn()
	if err != nil {
		return err
	}
	var fd int
	var failure error
	// A number of its own, as closing the first takes it out of the runtime's poller.
	err = given.Control(func(old uintptr) { fd, failure = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0) })
	if err = errors.Join(err, failure); err != nil {
		return fmt.Errorf("take over a connection: %w", err)
	}
	_ = c.outside.Close() // nothing waits in it to be written
	c.outside, c.fd, c.task = nil, fd, t
	c.readable = true
	return nil
}

// leave hands it back to whoever wants it. The task calls it, or somebody after its end.
func (c *taskConn) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.task == nil {
		return
	}
	if c.closed {
		return
	}
	file := os.NewFile(uintptr(c.fd), "connection")
	conn, err := net.FileConn(file)
	_ = file.Close() // the new one has a number of its own, or it is of no use
	c.task, c.fd = nil, -1
	if err != nil {
		c.closed = true
		return
	}
	c.outside = conn
}

// elsewhere is the connection to use when no task has it.
func (c *taskConn) elsewhere() (net.Conn, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.closed {
		return nil, net.ErrClosed
	}
	return c.outside, nil
}

// Read implements net.Conn.
func (c *taskConn) Read(b []byte) (int, error) {
	if conn, err := c.elsewhere(); err != nil || conn != nil {
		return readFrom(conn, b, err)
	}
	if len(b) == 0 {
		return 0, nil
	}
	for {
		if !c.readable && !c.isClosed() {
			if !c.task.loop.await(c, unix.POLLIN) {
				return 0, net.ErrClosed
			}
		}
		n, err := c.call(raw.Receive, b)
		// Less than asked for was all that there was.
		c.readable = err == nil && n == len(b)
		switch {
		case errors.Is(err, unix.EAGAIN): // it was woken by something else
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

func readFrom(conn net.Conn, b []byte, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	return conn.Read(b)
}

// Write implements net.Conn.
func (c *taskConn) Write(b []byte) (int, error) {
	if conn, err := c.elsewhere(); err != nil {
		return 0, err
	} else if conn != nil {
		return conn.Write(b)
	}
	sent := 0
	for sent < len(b) {
		n, err := c.call(raw.Send, b[sent:])
		if errors.Is(err, unix.EAGAIN) {
			if !c.task.loop.await(c, unix.POLLOUT) {
				return sent, net.ErrClosed
			}
			continue
		}
		if err != nil {
			return sent, err
		}
		sent += n
	}
	c.readable = true
	return sent, nil
}

// call receives or sends, which does not wait.
func (c *taskConn) call(do func(socket int, b []byte) (int, error), b []byte) (int, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.closed {
		return 0, net.ErrClosed
	}
	return do(c.fd, b)
}

func (c *taskConn) isClosed() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.closed
}

// Close implements net.Conn. Anybody may call it; who reads or writes is told.
func (c *taskConn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	c.closed = true
	if c.outside != nil {
		return c.outside.Close()
	}
	c.task.loop.wake(c.task)
	return unix.Close(c.fd) // the bell has rung: nobody waits for this number again
}

// errNoDeadline is said of a connection that a task has. Nobody sets one there: what ends a
// wait is Close.
var errNoDeadline = errors.New("a task's connection has no deadlines")

// SetDeadline implements net.Conn.
func (c *taskConn) SetDeadline(t time.Time) error {
	return c.limit(t, func(conn net.Conn) error { return conn.SetDeadline(t) })
}

// SetReadDeadline implements net.Conn.
func (c *taskConn) SetReadDeadline(t time.Time) error {
	return c.limit(t, func(conn net.Conn) error { return conn.SetReadDeadline(t) })
}

// SetWriteDeadline implements net.Conn.
func (c *taskConn) SetWriteDeadline(t time.Time) error {
	return c.limit(t, func(conn net.Conn) error { return conn.SetWriteDeadline(t) })
}

func (c *taskConn) limit(t time.Time, set func(net.Conn) error) error {
	conn, err := c.elsewhere()
	switch {
	case err != nil:
		return err
	case conn != nil:
		return set(conn)
	case t.IsZero():
		return nil
	}
	return errNoDeadline
}

// LocalAddr implements net.Conn.
func (c *taskConn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements net.Conn.
func (c *taskConn) RemoteAddr() net.Addr { return c.remote }
