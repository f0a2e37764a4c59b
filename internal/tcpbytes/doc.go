// Package tcpbytes counts the bytes that servers of this machine have sent and received over
// TCP, as the kernel keeps them for each socket (sock_diag(7)).
//
// Invariant: what a socket had in its last moments counts as well, since the kernel tells of each
// that ends; when it could not tell of all, the counters begin a new count, and whoever compares
// two of them sees it by Count.Lost. It changes nothing and reads no byte of a session. Called
// by agent.
package tcpbytes
