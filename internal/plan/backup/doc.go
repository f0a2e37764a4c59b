// Package backup decides what one snapshot needs (Next), and which automated snapshots of an
// instance let others go (History, Retention). It is pure, like package plan, which asks it when
// the next one is due: internal/reconcile calls it and writes what it returns. Invariant, tested
// on random worlds: no snapshot goes without which a promised moment could not be restored.
package backup
