// Package parameter describes the server's variables as RDS's parameters: which of them a user may
// change, with which values, and why not the others. It is pure; the rows come from a server.
package parameter
