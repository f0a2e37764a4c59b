package eventloop

import (
	"fmt"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// acceptsPerTurn bounds how long others wait for a burst of new clients.
const acceptsPerTurn = 64

// Listener takes new clients on the thread of its loop.
type Listener struct {
	conn  *Conn
	taken func(fd int, from netip.AddrPort)
}

// Listen has taken called with the descriptor, which does not block, and the address of each
// client. It owns a copy of socket, which the caller closes.
func (l *Loop) Listen(socket *net.TCPListener, taken func(fd int, from netip.AddrPort)) (*Listener, error) {
	raw, err := socket.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	fd := -1
	var failure error
	if err := raw.Control(func(of uintptr) { fd, failure = unix.FcntlInt(of, unix.F_DUPFD_CLOEXEC, 0) }); err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	if failure != nil {
		return nil, fmt.Errorf("listen: %w", failure)
	}
	listener := &Listener{taken: taken}
	c := &Conn{Handler: listener, loop: l, fd: fd, accepts: listener}
	if err := l.register(c); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	listener.conn = c
	return listener, nil
}

// Close takes no more clients.
func (n *Listener) Close() { n.conn.Close() }

// Data, Drained and Closed make it a Handler, of which only Closed is called.
func (n *Listener) Data(*Conn, []byte) int { return 0 }
func (n *Listener) Drained(*Conn)          {}
func (n *Listener) Closed(*Conn, error)    {}

// accept takes who waits. Without descriptors left it pauses for a tick: epoll would report
// the client that cannot be taken for ever.
func (n *Listener) accept() {
	for range acceptsPerTurn {
		fd, from, err := unix.Accept4(n.conn.fd, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		switch err {
		case nil:
		case unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM:
			n.conn.Pause(false)
			time.AfterFunc(tick, func() { n.conn.loop.Do(n.conn.Resume) })
			return
		case unix.EINTR, unix.ECONNABORTED:
			continue
		default:
			return
		}
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)
		n.taken(fd, addrPort(from))
	}
}

func addrPort(from unix.Sockaddr) netip.AddrPort {
	switch a := from.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr).Unmap(), uint16(a.Port))
	}
	return netip.AddrPort{}
}
