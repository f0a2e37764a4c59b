// Package agent makes a host obey: it takes the assignments of its host, saves
// each to disk before obeying it, drives the engines step by step until the
// assignment is true, and reports what it sees.
//
// It must not decide: what to run is the planner's, how to run it is the
// engine's. It needs no control plane to keep databases alive: saved assignments
// are obeyed from the first moment, also while the store is down. Invariants: a
// lower generation is refused, and the same one with other content; an instance
// has one worker, so its steps never overlap; nothing is removed because a
// record is missing, only because an assignment says absent.
//
// What is common to all kinds is in unit; a kind has its look and its steps (kind). Tasks
// leave nothing but a result (task.go).
//
// Servers of one instance (members of a group) are obeyed each for itself. Invariants: no
// worker waits for a server that hangs, so that one can always be fenced; clients are led
// to the primary of the newest epoch alone. What their followers on other hosts need of
// their files is brought beside that (clone_push.go).
//
// Called by internal/service. See DESIGN.md.
package agent
