package pool

import (
	"net/netip"
	"time"

	"kurabe/internal/proxy/eventloop"
)

// Server is a connection to a database server.
type Server struct {
	Key     Key
	Address netip.AddrPort
	Epoch   int64
	Conn    *eventloop.Conn
	Session any // the protocol's
	Opened  time.Time
	Used    time.Time // when it came back last

	pool       *Pool
	group      *group
	idle, gone bool
	prev, next *Server // in the list of those that are idle

	prevOfAll, nextOfAll *Server
}

// Pool is where it belongs.
func (s *Server) Pool() *Pool { return s.pool }

// Gone says whether the connection has ended.
func (s *Server) Gone() bool { return s.gone }

// serverList holds what is idle, in the order of coming back.
type serverList struct {
	first, last *Server
	length      int
}

func (l *serverList) add(s *Server) {
	s.idle, s.prev, s.next = true, l.last, nil
	if l.last != nil {
		l.last.next = s
	} else {
		l.first = s
	}
	l.last = s
	l.length++
}

func (l *serverList) remove(s *Server) {
	if s.prev != nil {
		s.prev.next = s.next
	} else {
		l.first = s.next
	}
	if s.next != nil {
		s.next.prev = s.prev
	} else {
		l.last = s.prev
	}
	s.idle, s.prev, s.next = false, nil, nil
	l.length--
}

// remember and forget keep the list of all connections of a group.
func (g *group) remember(s *Server) {
	s.nextOfAll = g.all
	if g.all != nil {
		g.all.prevOfAll = s
	}
	g.all = s
	g.servers++
}

func (g *group) forget(s *Server) {
	if s.prevOfAll != nil {
		s.prevOfAll.nextOfAll = s.nextOfAll
	} else {
		g.all = s.nextOfAll
	}
	if s.nextOfAll != nil {
		s.nextOfAll.prevOfAll = s.prevOfAll
	}
	s.prevOfAll, s.nextOfAll = nil, nil
	g.servers--
}

// Waiter is a client's place in a queue. It is part of the client, so that waiting allocates
// nothing.
type Waiter struct {
	Borrower Borrower

	group      *group
	since      time.Time
	prev, next *Waiter
}

// Waits says whether it is in a queue.
func (w *Waiter) Waits() bool { return w.group != nil }

// waiterList is a queue.
type waiterList struct {
	first, last *Waiter
	length      int
}

func (l *waiterList) add(w *Waiter) {
	w.prev, w.next = l.last, nil
	if l.last != nil {
		l.last.next = w
	} else {
		l.first = w
	}
	l.last = w
	l.length++
}

func (l *waiterList) remove(w *Waiter) {
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		l.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		l.last = w.prev
	}
	w.prev, w.next = nil, nil
	l.length--
}
