// Package unit drives one thing that is assigned to a host, of whatever kind: it saves each
// assignment before it obeys, refuses stale ones, reports, retires, and remembers the things
// of a kind in a Table.
//
// A kind brings its look and its steps (Kind). Invariants: a lower generation is refused, and
// the same one with other content; one goroutine acts on a thing and reports of it, so its
// steps never overlap; nothing is removed because a record is missing. Called by agent.
package unit
