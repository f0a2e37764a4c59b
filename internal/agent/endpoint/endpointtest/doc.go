// Package endpointtest has an endpoint and an interface of a machine that only note what
// becomes of them.
package endpointtest
