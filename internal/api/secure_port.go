package api

import (
	"crypto/tls"
	"net"
	"sync"
)

// SecurePort makes a listener one whose connections are TLS when their clients begin so, and
// plain otherwise: one port serves both, so a URL needs no second number, and whoever checks a
// signature finds its certificate by https, as SNS's clients insist.
func SecurePort(l net.Listener, config *tls.Config) net.Listener { return securePort{l, config} }

type securePort struct {
	net.Listener
	config *tls.Config
}

// Accept implements net.Listener. It reads nothing: a client that says nothing would hold up the
// others.
func (l securePort) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &portConn{Conn: c, config: l.config}, nil
}

// handshakeRecord is the first byte of a TLS connection, and of no HTTP request.
const handshakeRecord = 22

// portConn decides at its first byte. It is read before anything is written, under the
// deadlines that the server of HTTP has set.
type portConn struct {
	net.Conn
	config *tls.Config
	once   sync.Once
	inner  net.Conn // nil while nothing was read
	err    error
}

func (c *portConn) decide() {
	first := make([]byte, 1)
	n, err := c.Conn.Read(first)
	c.inner, c.err = &begun{c.Conn, first[:n]}, err
	if n == 1 && first[0] == handshakeRecord {
		c.inner = tls.Server(c.inner, c.config)
	}
}

// Read implements net.Conn.
func (c *portConn) Read(b []byte) (int, error) {
	c.once.Do(c.decide)
	if c.err != nil {
		return 0, c.err
	}
	return c.inner.Read(b)
}

// Write implements net.Conn.
func (c *portConn) Write(b []byte) (int, error) {
	c.once.Do(c.decide)
	if c.err != nil {
		return 0, c.err
	}
	return c.inner.Write(b)
}

// begun is a connection of which a byte was read already.
type begun struct {
	net.Conn
	first []byte
}

// Read implements net.Conn.
func (c *begun) Read(b []byte) (int, error) {
	if len(c.first) > 0 && len(b) > 0 {
		n := copy(b, c.first)
		c.first = c.first[n:]
		return n, nil
	}
	return c.Conn.Read(b)
}
