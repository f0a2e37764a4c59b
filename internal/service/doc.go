// Package service assembles the processes of Kurabe: a server, which has API, planner, state store
// and the agent of its own machine in it, and an agent on another machine.
//
// It opens the data folder, joins, starts the parts in order, and ends them. What a part does is in
// the part's own package; nothing here decides about a database. The story of a start is
// startService in service.go. Called by cmd/kurabe, which has the flags.
//
// Invariants: the lock of the data folder is held from before anything is opened until all has
// ended; databases are looked at before anybody can ask for a change; they outlive the process
// unless it was told to stop them.
package service
