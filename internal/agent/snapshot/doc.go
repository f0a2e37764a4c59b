// Package snapshot takes, copies, seals, archives, verifies and removes the snapshots of one
// host, as they are assigned, each by a unit of its own.
//
// Invariants: two of one instance are taken one after the other; one that was complete is
// never taken again, because it would show another moment under the same name. It must not
// know how an engine is copied (Folders) nor drive a server. Called by agent.
package snapshot
