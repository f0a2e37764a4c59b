// Package my encodes and decodes the client/server protocol of MariaDB: packets and their
// numbers, the greeting and the login with its plugins, the packets that end an answer with
// the changes of the session that they report, and the words of a statement.
//
// It reads from memory and writes to memory: no sockets, no state of a session. Whatever it
// reads may come from a stranger: every function is total, bounded by its input, and fuzzed.
//
// Called by internal/proxy/mariadb.
package my
