// Package proc runs processes that must outlive us, finds them again after our
// own death, and runs short tools. It is the only package that may start a
// process.
//
// A process starts through a shim: this same binary, run as "kurabe shim", which
// prepares itself and then becomes the engine by exec, under the same pid. What
// the shim does between fork and exec cannot be done by os/exec, and could not be
// reported by it either.
//
// Invariants, and what breaks without them:
//
//   - One server per data folder. The shim takes the lock file with flock and
//     hands the descriptor through exec to the whole process tree, so the kernel
//     keeps it until the last process of the tree is gone. No file content and no
//     bookkeeping of ours can be stale about it. Without it, a postmaster that
//     died and left a backend behind would meet its successor on the same files.
//   - The record is on disk before exec. If we are killed at any instruction, the
//     next of us finds either no engine or an engine with a record; a shim whose
//     service is gone does not exec.
//   - A pid is trusted only with its start time and boot id, and signals go
//     through a pidfd. A reused pid is never signalled.
//   - Nothing here ties the life of an engine to ours: new session, no parent
//     death signal, no pipe it could block on. Under systemd the unit needs
//     KillMode=process, or systemd ends the databases when it stops us.
//   - Secrets go through standard input or files, never argv or environment,
//     which any user can read in /proc.
//
// Needs Linux 5.10. Every binary that starts processes, test binaries included,
// begins with: if proc.IsShim() { proc.ShimMain() }.
//
// Called by agent, engine, snapshot, drill and warden. It knows nothing of engines.
package proc
