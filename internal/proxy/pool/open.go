package pool

import (
	"crypto/tls"
	"errors"
	"net/netip"
	"time"

	"kurabe/internal/proxy/eventloop"
)

// Opened is a connection that has logged in.
type Opened struct {
	Dialed    *eventloop.Dialed
	Encrypted *tls.Conn // nil without TLS
	Session   any       // what the protocol knows of it
	// Handler is the connection's; it calls Gone when it is told of the end.
	Handler func(*Server) eventloop.Handler
}

// choose gives the address that a connection of this kind should lead to: the writer, or the
// reader with the fewest connections. Without readers the writer reads.
func (p *Pool) choose(key Key) (netip.AddrPort, bool) {
	if !key.Reads || len(p.route.Readers) == 0 {
		return p.route.Writer, p.route.Writer.IsValid()
	}
	best := p.route.Readers[0]
	for _, reader := range p.route.Readers[1:] {
		if p.open[reader] < p.open[best] {
			best = reader
		}
	}
	return best, true
}

// openFor opens as many connections as clients wait for and the limits allow.
func (p *Pool) openFor(g *group) {
	now := p.loop.Now()
	for g.opening < min(g.waiting.length, openingMax) && !now.Before(g.retry) {
		if g.failure != nil && g.opening > 0 {
			return // one at a time finds out whether it works again
		}
		address, ok := p.choose(g.key)
		if !ok {
			return
		}
		if p.open[address] >= p.limits.MaxServers {
			p.evict(g, address)
			return
		}
		p.open[address]++
		g.opening++
		go p.dial(g, address, p.route.Epoch, now.Add(openTime))
	}
}

// evict closes the connection to an address that has been idle longest, to make room. What
// waits is served when it is gone.
func (p *Pool) evict(mine *group, address netip.AddrPort) {
	var oldest *Server
	for _, g := range p.groups {
		if g == mine {
			continue
		}
		for s := g.idle.first; s != nil; s = s.next {
			if s.Address == address {
				if oldest == nil || s.Used.Before(oldest.Used) {
					oldest = s
				}
				break
			}
		}
	}
	if oldest != nil {
		oldest.group.idle.remove(oldest)
		p.Discard(oldest)
	}
}

func (p *Pool) dial(g *group, address netip.AddrPort, epoch int64, deadline time.Time) {
	opened, err := p.opener.Open(g.key, address, deadline)
	if !p.loop.Do(func() { p.opened(g, address, epoch, opened, err) }) && err == nil {
		_ = opened.Dialed.Close()
	}
}

// opened takes a connection over, or the reason for which there is none.
func (p *Pool) opened(g *group, address netip.AddrPort, epoch int64, o *Opened, err error) {
	g.opening--
	s := &Server{Key: g.key, Address: address, Epoch: epoch, Opened: p.loop.Now(), Used: p.loop.Now(), pool: p, group: g}
	if err == nil {
		s.Session = o.Session
		s.Conn, err = p.loop.AdoptDialed(o.Dialed, o.Encrypted, o.Handler(s))
	}
	if err != nil {
		p.failed(g, address, epoch, err)
		return
	}
	p.stats.Opened++
	g.failure, g.backoff, g.retry = nil, 0, time.Time{}
	g.remember(s)
	p.Return(s)
	p.openFor(g)
}

func (p *Pool) failed(g *group, address netip.AddrPort, epoch int64, err error) {
	p.stats.Failed++
	g.failure = err
	if epoch == p.route.Epoch {
		g.backoff = min(max(2*g.backoff, backoffMin), backoffMax)
		g.retry = p.loop.Now().Add(g.backoff)
	}
	if refused := (*Refused)(nil); errors.As(err, &refused) {
		for w := g.waiting.first; w != nil; w = g.waiting.first {
			p.fail(g, w, err)
		}
		g.retry = time.Time{}
	}
	p.left(address)
}
