// Package door opens the sessions of accounts: the pools by which the service comes to a server
// through the port of clients or through a private server's socket.
package door
