// Package engine turns an assignment into a running database server.
//
// What both engines share lives here: the folder of an instance (Home), the
// order of the named steps (Steps, a pure function of assignment and
// observation) and the steps themselves, those of a server of a group (Replicator)
// included. What differs lives behind Driver, in
// engine/postgres and engine/mariadb. The agent is the only caller.
//
// Invariants: a data folder has at most one server (the whole process tree of
// an engine holds the kernel lock of Home.LockFile); a step is idempotent and
// may be repeated or cut off at any instruction; nothing of an instance is
// removed unless the assignment's goal says absent, or another server that writes
// has all of it and this one's data cannot follow it. In a group, a server whose
// commits others must have is not started twice by one order, and not before it is
// noted that clients are to be kept out.
package engine
