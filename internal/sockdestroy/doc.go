// Package sockdestroy ends TCP connections of this machine, whosever they are, as a reset does, on
// both sides at once (SOCK_DESTROY). It names each socket by the kernel's cookie: by its addresses
// alone the kernel would find the listener, and close that, once the connection has ended.
//
// It needs root (CAP_NET_ADMIN) and a kernel with CONFIG_INET_DIAG_DESTROY. Called by sklookup
// and packetfilter.
package sockdestroy
