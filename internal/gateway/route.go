package gateway

import (
	"errors"
	"fmt"
	"net/netip"
)

// Route says where the sessions of an endpoint go.
type Route struct {
	// Epoch counts the writers: each has one of its own, higher than any before.
	Epoch int64
	// Writer is the address of the server, the zero value while it takes no new sessions:
	// they are held.
	Writer netip.AddrPort
	// PID is the process that listens there, 0: unknown.
	PID int
}

// ErrDeposed is the error of a route of an epoch that is over.
var ErrDeposed = errors.New("the epoch is older than the current one")

// ErrTwoWriters is the error of another writer for an epoch that has one.
var ErrTwoWriters = errors.New("the epoch has another primary")

// routed is the newest route, and who its epoch's writer is, which stays known while no
// new sessions go there.
type routed struct {
	Route
	of netip.AddrPort
}

// follow is the state after a route was told.
func (r routed) follow(next Route) (routed, error) {
	switch {
	case next.Epoch < r.Epoch:
		return r, fmt.Errorf("route of epoch %d: %w: %d", next.Epoch, ErrDeposed, r.Epoch)
	case next.Epoch > r.Epoch:
		return routed{next, next.Writer}, nil
	case next.Writer.IsValid() && r.of.IsValid() && next.Writer != r.of:
		return r, fmt.Errorf("route of epoch %d to %s: %w: %s", next.Epoch, next.Writer, ErrTwoWriters, r.of)
	}
	after := routed{next, r.of}
	if !after.of.IsValid() {
		after.of = next.Writer
	}
	return after, nil
}
