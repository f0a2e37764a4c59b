// Package ownconn makes the connections of the service itself to database servers. Their packets
// have a mark, by which a host's packet filter tells them from those of clients on the same
// machine: security groups are for clients. Only a process with CAP_NET_ADMIN can set it.
package ownconn
