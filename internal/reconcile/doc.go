// Package reconcile is the loop around the planner: it is elected, reads the
// world of each instance and snapshot from the store's view, asks plan.Next or
// backup.Next, and commits what changed in one transaction per unit that also
// compares the election key.
//
// It must not decide anything itself. A wake-up means "look again"; a full scan
// runs every 30 s even if nothing woke. A deposed planner cannot write: its
// transactions compare a key that its successor has rewritten.
//
// Called by internal/service.
package reconcile
