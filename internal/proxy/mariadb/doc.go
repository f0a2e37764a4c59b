// Package mariadb serves the clients of a proxy in MariaDB's protocol, with connections that
// it borrows from a pool for a transaction each.
//
// A client logs in at the proxy and has a session there: its schema, its variables and its
// prepared statements. A server's connection has a session too, which the server reports on
// (session_track_*). Before a client's command goes to a connection, the connection is
// brought into the client's state, if it is in another.
//
// What it holds to:
//   - A command is sent to a server once. What a server has not answered is told as unknown,
//     never repeated and never called a success.
//   - A client gets whole packets and one end for each answer, also when a server goes away.
//   - A connection that holds something that cannot be set again stays with its client (a
//     pin), and is reset before another one gets it.
//   - What the last statement left in the session (LAST_INSERT_ID(), the warnings) is that
//     client's own: it is saved before another client may overwrite it, or the question for
//     it fails.
//
// A command of a client goes through client.Data, which looks for a whole command or the
// head of a long one, and calls it again after every step that had to be waited for: a
// connection from the pool, a state to be set, a statement to be prepared. Nothing of the
// command is consumed before it is sent, so that each call begins anew.
//
// Called by internal/proxy/process.
package mariadb
