package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// blockingConn is a connection whose reader waits in the kernel, in a thread of its own,
// and not in the runtime's poller. There a thread that has sent a request looks for other
// work before it sleeps, on the processor that the server would have answered from: of
// transactions of seven statements on two processors the slow ones took longer by half.
type blockingConn struct {
	fd            int
	local, remote net.Addr
	// using is held by whoever is in a call with fd; Close takes it alone, so that the number
	// is not somebody else's by then.
	using  sync.RWMutex
	closed bool
}

// dialBlocking dials as dial does.
func dialBlocking(dial dialer) dialer {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		tcp, ok := conn.(*net.TCPConn)
		if !ok {
			return conn, nil
		}
		return newBlockingConn(tcp)
	}
}

// newBlockingConn takes a connection over.
func newBlockingConn(tcp *net.TCPConn) (*blockingConn, error) {
	defer tcp.Close()
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil, err
	}
	c := &blockingConn{fd: -1, local: tcp.LocalAddr(), remote: tcp.RemoteAddr()}
	var failure error
	err = raw.Control(func(fd uintptr) {
		c.fd, failure = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0)
	})
	if err = errors.Join(err, failure); err != nil {
		return nil, fmt.Errorf("take over a connection: %w", err)
	}
	if err := unix.SetNonblock(c.fd, false); err != nil {
		return nil, errors.Join(fmt.Errorf("take over a connection: %w", err), unix.Close(c.fd))
	}
	return c, nil
}

// call makes a call with the descriptor, again when a signal came first.
func (c *blockingConn) call(do func(fd int) (int, error)) (int, error) {
	c.using.RLock()
	defer c.using.RUnlock()
	for {
		if c.closed {
			return 0, net.ErrClosed
		}
		n, err := do(c.fd)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return 0, os.ErrDeadlineExceeded
		}
		return max(n, 0), err
	}
}

// Read implements net.Conn.
func (c *blockingConn) Read(b []byte) (int, error) {
	n, err := c.call(func(fd int) (int, error) { return unix.Read(fd, b) })
	if n == 0 && err == nil && len(b) > 0 {
		err = io.EOF
	}
	return n, err
}

// Write implements net.Conn.
func (c *blockingConn) Write(b []byte) (int, error) {
	sent := 0
	for sent < len(b) {
		n, err := c.call(func(fd int) (int, error) { return unix.Write(fd, b[sent:]) })
		sent += n
		if err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// Close implements net.Conn. Whoever reads is told first.
func (c *blockingConn) Close() error {
	c.breakOff()
	c.using.Lock()
	defer c.using.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	c.closed = true
	return unix.Close(c.fd)
}

func (c *blockingConn) breakOff() {
	_, _ = c.call(func(fd int) (int, error) { return 0, unix.Shutdown(fd, unix.SHUT_RDWR) }) // it may be broken already
}

// SetDeadline implements net.Conn. One that is over ends what goes on, and the connection
// with it: nobody here goes on with one after that.
func (c *blockingConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline implements net.Conn.
func (c *blockingConn) SetReadDeadline(t time.Time) error { return c.limit(unix.SO_RCVTIMEO, t) }

// SetWriteDeadline implements net.Conn.
func (c *blockingConn) SetWriteDeadline(t time.Time) error { return c.limit(unix.SO_SNDTIMEO, t) }

func (c *blockingConn) limit(option int, t time.Time) error {
	left := time.Duration(0) // none
	if !t.IsZero() {
		if left = time.Until(t); left <= 0 {
			c.breakOff()
			return nil
		}
	}
	value := unix.NsecToTimeval(max(left, time.Duration(0)).Nanoseconds())
	if left > 0 && value.Sec == 0 && value.Usec == 0 {
		value.Usec = 1
	}
	_, err := c.call(func(fd int) (int, error) { return 0, unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, option, &value) })
	return err
}

// LocalAddr implements net.Conn.
func (c *blockingConn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements net.Conn.
func (c *blockingConn) RemoteAddr() net.Addr { return c.remote }
