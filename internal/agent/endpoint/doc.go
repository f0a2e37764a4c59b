// Package endpoint holds the addresses of one host: those that servers listen at, the
// endpoints of primaries that listen elsewhere, and the addresses of servers that are stopped.
//
// Workers say what their assignments ask for; one goroutine (Table.Run) opens, leads and
// closes, so that no worker waits for an address. Invariants: clients are led to the primary
// of the newest epoch alone; an endpoint that another host may take is held under a lease
// only. Called by agent.
package endpoint
