// Command kurabe is the whole service in one binary: the server with its agent,
// and short commands for people.
//
// This folder holds flags, wiring and the story of a start and a stop; nothing
// here decides. The client commands speak the public API only.
package main
