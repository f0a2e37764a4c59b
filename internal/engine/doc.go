// Package engine turns an assignment into a running database server.
//
// What both engines share lives here: the folder of an instance (Home), the
// order of the named steps (Steps, a pure function of assignment and
// observation) and the steps themselves. What differs lives behind Driver, in
// engine/postgres and engine/mariadb. The agent is the only caller.
//
// Invariants: a data folder has at most one server (the whole process tree of
// an engine holds the kernel lock of Home.LockFile); a step is idempotent and
// may be repeated or cut off at any instruction; nothing of an instance is
// removed unless the assignment's goal says absent.
package engine
