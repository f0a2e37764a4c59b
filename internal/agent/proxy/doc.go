// Package proxy keeps the processes of the proxies that are assigned to a host: it writes the
// files that they read, starts them, takes up again those of an earlier life of the agent, has
// them reload, and ends them.
//
// Invariants: a process is touched by the unit of its proxy alone; a new route reaches the
// process before anything else is done for an assignment, so that no step that waits keeps
// clients at a deposed primary; passwords are in the process's file and in memory only.
//
// Called by internal/agent.
package proxy
