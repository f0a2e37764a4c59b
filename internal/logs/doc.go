// Package logs reads the engines' own log files below the instances' homes and
// names them as RDS does ("error/postgresql.log.2026-11-21-03").
//
// A name from outside is only ever looked up in a fresh listing, so it cannot
// lead out of an instance's log folder; links and everything else that is no
// regular file are not there. It follows no file and keeps none open: each
// portion is one bounded read. It knows this host's files; those of another one are
// read there, where hostread asks for them.
// Called by internal/control, over control.LogSource.
package logs
