// Package proxy holds what the two protocols of the connection proxy share: the settings
// that they serve by, what they count, and the reasons for which a client keeps a connection.
//
// A proxy is a process of its own (internal/proxy/process). Below it, each on the thread of
// an event loop (internal/proxy/eventloop), a Frontend of internal/proxy/postgres or
// internal/proxy/mariadb serves the clients of one endpoint with connections that it borrows
// from a pool (internal/proxy/pool).
//
// A client has a connection for a transaction, as the protocol's own status tells, and keeps
// it (is pinned) only while the connection holds something that cannot be set again on
// another one.
package proxy
