package proxy

import "time"

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
