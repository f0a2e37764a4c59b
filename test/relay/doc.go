// Package relay is a connection proxy of one endpoint without the process around it, and a server
// below it: for tests of the proxy and for its benchmark.
package relay
