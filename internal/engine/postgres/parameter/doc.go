// Package parameter describes the server's settings as RDS's parameters: which of them a user may
// change, with which values, why not the others, and what they make a server take. It is pure; the
// rows come from a server.
package parameter
