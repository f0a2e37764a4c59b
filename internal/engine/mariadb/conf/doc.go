// Package conf renders the settings folder of a server, and knows where a server's programs and
// files are. It starts nothing and asks no server.
//
// Invariant: no value of a user's can begin a line of its own in the settings file (Option).
package conf
