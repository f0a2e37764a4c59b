// Package pool keeps the connections to database servers that the clients of a proxy share:
// it lends one for a transaction, opens more while there are clients that wait and the limits
// allow it, and closes those that are too old, too many, or lead to a server that the route
// names no more.
//
// It knows no protocol: opening and logging in is its caller's Opener, and what a server's
// connection has to be told before another client may use it is the borrower's business. A
// pool belongs to one event loop and is touched on its thread only.
//
// What it holds to:
//   - Clients that wait for the same database and user are served in the order of their
//     coming, and each waits at most the borrow timeout.
//   - Never more connections than MaxServers, those that are being opened included.
//   - A connection of an older epoch is never lent, and one that is lent is reset at the
//     moment at which the route changes.
//   - A server that cannot be reached is tried again with backoff while clients wait; a login
//     that the server refuses fails those who wait for it at once.
//
// Called by internal/proxy/postgres and internal/proxy/mariadb.
package pool
