// Package pg is the codec of PostgreSQL's protocol, version 3: the headers and the parts of
// messages that a relay has to look into, messages that it makes itself, and a lexer that tells
// what a statement leaves in its session. It knows no connection and keeps nothing.
//
// What it holds to: no input makes it panic, allocate more than the input's size, or read
// beyond it.
//
// Called by internal/proxy/postgres.
package pg
