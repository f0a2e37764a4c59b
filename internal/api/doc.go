// Package api is the one port of the service: it tells the AWS protocols and
// services apart, checks signatures, runs the operation and writes the reply.
//
// A Service is a table in a sub-package: its protocols, its operations with their
// handlers, and its own errors beside those of all services (error_map.go). Bodies are
// written by the codecs of internal/aws and by protocol.go.
//
// Invariants: nothing of a body is parsed before its signature is verified; no operation
// runs with a parameter that nobody read; every request gets an id, one reply and at most one
// log line; a panic of a handler costs one request, not the process.
// internal/service builds the Server and mounts what is not an AWS API beside it.
package api
