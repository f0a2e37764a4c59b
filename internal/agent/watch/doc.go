// Package watch owns the lasting sessions of the service in a running server: one for each
// purpose, asked at a pace of its own.
//
// Invariants: a purpose has one session at most, and one question under way, each with a
// deadline, so a server that hangs costs its purposes a question each and no purpose another
// one's time; no session outlives the process that it was opened in, nor the watch of it. Who
// takes in an answer late loses those in between and holds up nobody else.
//
// It must not judge: what an answer or its lack means is the subscriber's. Called by agent.
package watch
