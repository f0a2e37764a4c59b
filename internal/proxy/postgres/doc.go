// Package postgres serves PostgreSQL's clients of a connection proxy: it logs them in by SCRAM,
// lends each of them a server's connection for a transaction, and carries their messages.
//
// A client's message is looked at by its header, and within by what decides where it goes: the
// names of prepared statements, which are rewritten to names of the server's connection, and the
// text of statements, for what they leave in the session. Everything else flows.
//
// What it holds to:
//   - A connection goes back only when the server has answered everything and says that no
//     transaction is open. What a connection owes is a queue (pending); an answer that is not in
//     it ends the connection.
//   - No client sees another's session: settings that differ are set again before its first
//     statement, what cannot be set again pins, and a connection that is in doubt is closed.
//   - A cancellation reaches the server only while that client's statement is there; the
//     connection is lent to nobody until the server has dealt with it.
//   - A commit whose answer is lost is told as unknown, and nothing is ever sent twice.
//   - A client that is idle holds no buffer, and nothing is allocated for a statement that
//     leaves nothing in its session.
//
// Called by internal/proxy/process.
package postgres
