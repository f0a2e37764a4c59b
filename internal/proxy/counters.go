package proxy

import (
	"maps"
	"time"
)

// Counters count since the start of the process, but for the gauges.
type Counters struct {
	Clients, ClientsTLS         int // gauges
	InTransaction, Pinned       int // gauges: clients that hold a connection
	ClientsReceived             uint64
	ClientsSucceeded            uint64
	ClientsFailedAuth           uint64
	ClientsClosed               uint64
	Queries, QueriesTLS         uint64
	ResponseTime, DatabaseTime  time.Duration // of all queries together
	ServersTLS                  int           // gauge
	Pins                        map[PinReason]uint64
	Cancels, TransactionsBroken uint64
}

// Copy is one that the loop does not change any more.
func (c Counters) Copy() Counters {
	c.Pins = maps.Clone(c.Pins)
	return c
}
