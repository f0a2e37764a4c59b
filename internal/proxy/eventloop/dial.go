package eventloop

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// Dialed is a connection to a server that a goroutine has opened and logged in on, before a
// loop takes it over. It is a net.Conn until then, to be wrapped by tls.Client where TLS is
// wanted.
type Dialed struct {
	socket *net.TCPConn
	memory *tlsSide // from the moment at which a loop has taken it over
}

// NewDialed wraps a connection.
func NewDialed(c *net.TCPConn) *Dialed { return &Dialed{socket: c} }

// Read reads from the socket, or from what the loop has read.
func (d *Dialed) Read(p []byte) (int, error) {
	if d.memory != nil {
		return d.memory.Read(p)
	}
	return d.socket.Read(p)
}

// Write writes to the socket, or to the loop.
func (d *Dialed) Write(p []byte) (int, error) {
	if d.memory != nil {
		return d.memory.Write(p)
	}
	return d.socket.Write(p)
}

// Close closes the socket, which a loop does by itself.
func (d *Dialed) Close() error {
	if d.memory != nil {
		return nil
	}
	return d.socket.Close()
}

func (d *Dialed) LocalAddr() net.Addr                { return d.socket.LocalAddr() }
func (d *Dialed) RemoteAddr() net.Addr               { return d.socket.RemoteAddr() }
func (d *Dialed) SetDeadline(t time.Time) error      { return d.socket.SetDeadline(t) }
func (d *Dialed) SetReadDeadline(t time.Time) error  { return d.socket.SetReadDeadline(t) }
func (d *Dialed) SetWriteDeadline(t time.Time) error { return d.socket.SetWriteDeadline(t) }

// AdoptDialed takes over d, with its TLS unless encrypted is nil. The caller has read
// everything that it asked the server for, through a reader that holds nothing back, and
// uses d no more.
func (l *Loop) AdoptDialed(d *Dialed, encrypted *tls.Conn, h Handler) (*Conn, error) {
	fd, err := takeDescriptor(d.socket)
	if err != nil {
		return nil, err
	}
	c := &Conn{Handler: h, loop: l, fd: fd}
	if encrypted != nil {
		s := newTLSSide()
		s.conn = encrypted
		s.driven(c)
		d.memory, c.tls = s, s
	}
	if err := l.register(c); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	if c.tls != nil {
		c.paused = true
		c.Resume() // crypto/tls may hold what arrived behind the last answer
	}
	return c, nil
}

// takeDescriptor closes the net.Conn and keeps its socket.
func takeDescriptor(socket *net.TCPConn) (int, error) {
	defer socket.Close()
	if err := socket.SetDeadline(time.Time{}); err != nil {
		return -1, fmt.Errorf("take over a connection: %w", err)
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return -1, fmt.Errorf("take over a connection: %w", err)
	}
	fd, failure := -1, errors.New("closed")
	err = raw.Control(func(of uintptr) {
		fd, failure = unix.FcntlInt(of, unix.F_DUPFD_CLOEXEC, 0)
	})
	if err = errors.Join(err, failure); err != nil {
		return -1, fmt.Errorf("take over a connection: %w", err)
	}
	return fd, nil // it does not block: the net package's never do
}
