package gateway

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"time"

	"kurabe/internal/ownconn"
)

// listen takes an address with a plain socket, as that of a database: Go's default would have
// several paths.
func listen(ctx context.Context, address netip.AddrPort) (*net.TCPListener, error) {
	var plain net.ListenConfig
	plain.SetMultipathTCP(false)
	listener, err := plain.Listen(ctx, "tcp", address.String())
	if err != nil {
		return nil, err
	}
	return listener.(*net.TCPListener), nil
}

// accept takes clients until the listener is closed.
func accept(ctx context.Context, listener *net.TCPListener, take func(*net.TCPConn)) {
	for {
		client, err := listener.AcceptTCP()
		switch {
		case err == nil:
			take(client)
		case errors.Is(err, net.ErrClosed):
			return
		default:
			// Out of descriptors, or a client that is gone already: the next may do.
			select {
			case <-ctx.Done():
				return
			case <-time.After(dialPause):
			}
		}
	}
}

// reach opens a session with a server. There is no TCP_USER_TIMEOUT: with one the kernel ends a session
// whose server is slow to read, as one is that loads a table and waits for a lock. A host
// that is lost ends its sessions by the epoch that follows.
func reach(ctx context.Context, server netip.AddrPort, limit time.Duration) (*net.TCPConn, error) {
	d := ownconn.Dialer() // who the client is was judged where it came in
	d.Timeout = limit
	conn, err := d.DialContext(ctx, "tcp", server.String())
	if err != nil {
		return nil, err
	}
	return conn.(*net.TCPConn), nil
}
