// Package netaddr holds addresses on this machine's network interfaces, so that other
// machines reach the servers that listen at them.
//
// Addresses come from a pool that is the host's alone. They are added to the interface
// whose network holds the pool, without a route of their own, and outlive this process:
// clients go on while nobody is there. What is in the pool is ours: a start removes what
// nobody needs any more.
//
// An address that moves between hosts may be in nobody's pool; it is marked by its label,
// "eth0:kurabe", so that a start finds it as well. Who may hold it is decided elsewhere: two
// hosts that hold one address take clients from each other.
//
// Called by internal/agent, over endpoint.Network, and by internal/warden.
package netaddr
