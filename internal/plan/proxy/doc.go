// Package proxy decides about proxies: their host, their addresses, their limits and the route
// to the servers of their target. It is as pure as plan: no clock, chance, log or I/O.
//
// Called by internal/reconcile.
package proxy
