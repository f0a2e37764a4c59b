// Package pulse is a client of a database that writes numbered rows one after the other,
// remembers which of them were acknowledged and when, and holds the table against that.
// So it says what a failover costs: how long nothing was acknowledged, and whether
// anything that was acknowledged is missing.
//
// It knows endpoints and logins and nothing of the service, so that what it says is what
// any client would see. Called by drill and by tests and benchmarks. Invariant: a number is
// tried once, and what its client was told is never forgotten.
package pulse
