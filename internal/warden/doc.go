// Package warden ends a database server at the end of its lease.
//
// The writer of a group on two hosts may serve only while it has a lease. The agent renews
// it; an agent that is frozen, killed or cut off cannot, and its server would go on to write
// beside its successor. The warden is a process of its own that does nothing but wait for
// that moment: then it kills every process of the server (SIGKILL, as a shutdown of any kind
// would still serve) and takes the server's addresses off this machine. The agent talks to
// it over a socket. It does not share the agent's fate: own session, no parent death signal,
// found again by the next agent.
//
// Invariants, and what breaks without them:
//
//   - After Extend has returned nil the server is killed at that moment, whatever becomes of
//     the agent. Until then the agent must not count on the lease it asked for.
//   - The end never moves backwards, and once it has come nothing moves it: not even a
//     renewal that was on its way while the warden was stopped. Time is CLOCK_BOOTTIME, of
//     the machine and not of the process.
//   - One warden per folder: a lock (package proc) that its process holds. A successor has
//     the same pid and the same lock.
//   - Nothing on the way to the kill needs the disk, which may be what has gone wrong. The
//     note about it comes last.
//   - The server is known by its marks (proc.Marks), never by a pid that somebody remembered.
//     A start that is under way is caught if its Spec.NotAfter is the end of the lease.
//   - A message that is not understood entirely changes nothing.
//
// Every binary that starts wardens, test binaries included, begins with, after the shim's
// line: if warden.IsWarden() { warden.Main() }.
//
// Called by internal/agent. It knows no instance, role or epoch. DESIGN.md has the figures.
package warden
