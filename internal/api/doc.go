// Package api is the one port of the service: it tells the AWS protocols and
// services apart, checks signatures, runs the operation and writes the reply.
//
// The operations themselves are tables in the sub-packages, one per service. The
// map from kurabe's error codes to AWS's is here, once, in errormap.go; bodies
// are written by the codecs of internal/aws and nowhere else.
//
// Invariants: no operation runs before its request is verified, nor with a
// parameter that nobody read; every request gets an id, one reply and at most one
// log line; a panic of a handler costs one request, not the process.
// cmd/kurabe builds the Server and mounts what is not an AWS API beside it.
package api
