package gateway

import "net/netip"

// Shortcut has the kernel give new connections to an address to the socket by which a
// process listens at another, before anybody who listens at the address itself. It
// forgets the socket when the process ends. Package sklookup is one.
type Shortcut interface {
	Set(address, server netip.AddrPort, pid int) error
	Clear(address netip.AddrPort) error
	Has(address netip.AddrPort) bool
	// Cut ends sessions that servers have at an address, where it can.
	Cut(address netip.AddrPort)
}

// depose ends the shortcut of an older epoch, and the sessions that went by it. The first
// route that is told ends none: they may be of the same epoch, from before this process
// began. The caller holds the lock.
func (e *Endpoint) depose() error {
	if e.o.Shortcut == nil || e.route.Epoch == 0 {
		return nil
	}
	if err := e.o.Shortcut.Clear(e.address); err != nil {
		return err
	}
	e.o.Shortcut.Cut(e.address)
	return nil
}

// shorten has new sessions follow a route on their own, or come here: while there is no
// writer they are held here, and where there is no shortcut they pass through here. A
// shortcut that cannot be ended is an error, since it may lead to a deposed writer; one
// that cannot be had is none. The caller holds the lock.
func (e *Endpoint) shorten(r Route) error {
	if e.o.Shortcut == nil {
		return nil
	}
	if r.Writer.IsValid() && r.PID > 0 && e.o.Shortcut.Set(e.address, r.Writer, r.PID) == nil {
		return nil
	}
	return e.o.Shortcut.Clear(e.address)
}

// shortenAgain is for a client that came here although there is a writer: its server may
// have begun to listen since the route was told. The caller holds the lock.
func (e *Endpoint) shortenAgain() {
	if e.o.Shortcut == nil || !e.route.Writer.IsValid() || e.o.Shortcut.Has(e.address) {
		return
	}
	_ = e.shorten(e.route.Route) // this client passes through here in any case
}
