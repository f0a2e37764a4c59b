package activity

import (
	"path/filepath"
	"strings"

	"kurabe"
	"kurabe/internal/threadwait"
)

// classify names a wait by the state of the process list and what the kernel says of the thread.
func classify(state string, s threadwait.State) (kind, wait string) {
	lower := strings.ToLower(state)
	switch {
	// These say for whom a thread waits, whatever system call it waits in.
	case strings.Contains(lower, "lock") && (strings.HasPrefix(lower, "waiting") || lower == "user lock"):
		return kurabe.WaitLock, state
	case lower == "user sleep", s.Call == threadwait.Sleep:
		return kurabe.WaitOther, orElse(state, "sleep")
	case s.Run == 'R':
		return kurabe.WaitCPU, kurabe.WaitCPU
	case s.File != "":
		return kurabe.WaitIO, fileKind(s.File) + " " + s.Call
	case s.Run == 'D':
		return kurabe.WaitIO, "disk"
	case s.Call == threadwait.Socket:
		return kurabe.WaitClient, "network"
	case strings.HasPrefix(lower, "waiting"), lower == "commit", s.Call == threadwait.Wait:
		return kurabe.WaitOther, orElse(state, "another thread")
	case s.Run == 0 && (lower == "writing to net" || lower == "reading from net"):
		return kurabe.WaitClient, state
	}
	return kurabe.WaitOther, orElse(state, "unknown")
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// fileKind names the kind of a file by its path.
func fileKind(path string) string {
	base := filepath.Base(path)
	switch {
	case strings.HasPrefix(base, "ib_logfile"):
		return "redo log"
	case strings.HasPrefix(base, "aria_log"):
		return "Aria log"
	case strings.Contains(base, "relay"):
		return "relay log"
	case strings.Contains(base, "-bin."), strings.Contains(base, "binlog"):
		return "binary log"
	case strings.HasSuffix(base, ".ibd"), strings.HasPrefix(base, "ibdata"), strings.HasPrefix(base, "undo"):
		return "InnoDB data file"
	case strings.HasPrefix(base, "#sql"), strings.HasPrefix(base, "ML"), strings.HasPrefix(base, "MY"), strings.HasSuffix(path, " (deleted)"):
		return "temporary file"
	}
	return "data file"
}
