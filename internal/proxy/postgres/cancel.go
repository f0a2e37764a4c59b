package postgres

import (
	"io"
	"net"
	"net/netip"
	"time"

	"kurabe/internal/wire/pg"
)

// cancelTime bounds a cancellation at the server.
const cancelTime = 10 * time.Second

// cancel has the statement of the client with this key cancelled, if one is under way. by is
// the connection that asks for it: it ends when the server has dealt with the cancellation.
func (f *Frontend) cancel(key uint64, by *client) {
	f.counters.Cancels++
	c := f.keys[key]
	switch {
	case c == nil:
	case c.waiter.Waits():
		f.pool.Leave(&c.waiter)
		c.failing = &pg.Failure{Severity: "ERROR", Code: "57014", Message: canceled}
		c.conn.Resume()
	case c.server != nil && c.server.pending.length > 0 && !c.server.owns():
		c.server.cancel(func() { by.conn.Close() })
		return
	}
	by.conn.Close()
}

// cancel asks the server to cancel what it does. Until the server has closed the connection of
// that request it may still come: the connection is lent to nobody before.
func (s *server) cancel(done func()) {
	s.cancels++
	address, key, loop := s.Address, s.key, s.Conn.Loop()
	go func() {
		requestCancel(address, key)
		loop.Do(func() {
			s.cancels--
			if done != nil {
				done()
			}
			if s.held && s.cancels == 0 {
				s.held = false
				if !s.Gone() {
					s.lend()
				}
			}
		})
	}()
}

// cancelRunning cancels a statement whose connection is about to be closed: the server would
// notice only when it has rows to send.
func (s *server) cancelRunning() {
	go requestCancel(s.Address, s.key)
}

// requestCancel returns when the server has closed the connection, hence has signalled its
// process, or cannot be reached.
func requestCancel(address netip.AddrPort, key uint64) {
	conn, err := net.DialTimeout("tcp", address.String(), cancelTime)
	if err != nil {
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(cancelTime))
	if _, err := conn.Write(pg.AppendCancel(nil, key)); err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, conn)
}
