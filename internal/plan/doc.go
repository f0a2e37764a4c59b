// Package plan decides. Next is a pure function from what is known of one
// instance (the time included) to what must change: a new assignment, a new
// status, events with their reasons, and when to look again.
//
// No clock, no randomness, no logging, no I/O, no store: internal/reconcile
// calls it and writes what it returns. Invariants, tested on random worlds: the
// input is not mutated; a satisfied world plans nothing; a generation never
// falls; a running server is restarted only for a reason that is written down;
// nothing is removed unless the user asked for it, or no moment that is promised needs
// it (backup.History says which snapshot lets another go).
package plan
