// Package scram is SCRAM-SHA-256 as PostgreSQL speaks it (RFC 5802, 5803 and 7677): the verifiers
// that it keeps of passwords, so that no server ever sees one, and both sides of a login. It knows
// no server and reads no file.
//
// Called by the API, the driver of PostgreSQL, and the connection proxy.
package scram
