// Package logstream keeps the continuous log of the instances of one host: from the
// engines' files through a spool beside them into the repository of backups, and
// back into a folder of files for a restore.
//
// Store is all of it. Follow tails the log of one instance through a Log (which the
// engine's driver implements), Run pushes what was spooled and looks whether it is
// still there, Fetch gives it back. A log is kept in runs (stretches without a gap)
// of pieces (ranges of one of the engine's files) with marks (moments tied to
// positions); DESIGN.md has the forms and what every crash leaves.
//
// Invariants: what a report claims (kurabe.InstanceLog.Reaches) Fetch delivers, byte
// for byte, or says which piece was lost; a run never spans a gap; a mark counts only
// when it and everything before its position is durable; an unreachable repository
// costs at most the spool's bound, and never the database. It knows no engine and
// asks no server but through Log. Called by the agent.
package logstream
