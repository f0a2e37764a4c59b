// Package sklookup has the kernel give connections to one address to a socket that
// listens at another: a BPF program of the type SK_LOOKUP (Linux 5.9) picks the socket
// out of a table before the kernel looks for a listener itself. The connection is the
// server's own, with the client's address on one side and the address it connected to on
// the other; no byte of it passes through anybody else.
//
// When the server ends, the kernel takes its socket out of the table, and the next
// client finds whoever listens at the address, if anybody does. Pinned (see Table), the
// table outlives the process that made it, so a server keeps its clients' address while
// nothing of Kurabe runs.
//
// It needs CAP_BPF, CAP_NET_ADMIN and CAP_SYS_PTRACE, and serves IPv4. Where it cannot
// be had, Set says so, once and for all; clients then reach whoever listens at the
// address.
package sklookup
