// Package integration holds the promises of the service, checked end to end with
// the real binary and real databases. It runs as root and without.
package integration
