package engine

import (
	"path/filepath"

	"kurabe/internal/daemon"
)

// Home is the folder of one instance on its host. Everything that belongs to
// the instance is below it, so removing it leaves nothing behind.
type Home struct {
	Dir string // absolute
}

// DataDir is the engine's own data folder. It appears by rename, so it is
// either complete or absent.
func (h Home) DataDir() string { return filepath.Join(h.Dir, "data") }

// ConfDir holds the settings that Kurabe renders. The engine's user may read
// but not write it.
func (h Home) ConfDir() string { return filepath.Join(h.Dir, "conf") }

// RunDir holds the administrative socket; only the service's and the engine's
// user may enter it.
func (h Home) RunDir() string { return filepath.Join(h.Dir, "run") }

// LogDir holds the engine's error logs.
func (h Home) LogDir() string { return filepath.Join(h.Dir, "log") }

// TLSDir holds the server's key and certificate (server.key, server.crt) and
// the authority's certificate (ca.pem).
func (h Home) TLSDir() string { return filepath.Join(h.Dir, "tls") }

// ReplayDir holds the log that a restore is brought to a moment with. It exists only
// meanwhile.
func (h Home) ReplayDir() string { return filepath.Join(h.Dir, "replay") }

// WardenDir is that of the process that ends the server with its lease; nobody but the service
// enters it.
func (h Home) WardenDir() string { return filepath.Join(h.Dir, "warden") }

// LockFile is locked by the engine's whole process tree as long as any of it
// lives.
func (h Home) LockFile() string { return filepath.Join(h.Dir, "engine.lock") }

// RecordFile names the running process (pid, start time, boot).
func (h Home) RecordFile() string { return filepath.Join(h.Dir, "process.json") }

// AppliedFile is what has been done to the database itself (see Applied).
func (h Home) AppliedFile() string { return filepath.Join(h.Dir, "applied.json") }

// WaitsFile is what was counted of commits that ended their wait early (see WaitCounter).
func (h Home) WaitsFile() string { return filepath.Join(h.Dir, "waits.json") }

// StartLog receives the standard output and error of the engine before its own
// log opens.
func (h Home) StartLog() string { return filepath.Join(h.Dir, "start.log") }

// Daemon is the server of the instance, as far as that runs at all.
func (h Home) Daemon() daemon.Daemon {
	return daemon.Daemon{Work: h.DataDir(), Lock: h.LockFile(), Record: h.RecordFile(), Log: h.StartLog(), From: h.Dir, Seen: h.Dir}
}
