package activity

import (
	"strings"

	"kurabe"
)

// classify names a wait by the state of the process list and what the kernel says of the thread.
func classify(state string, d doing) (kind, wait string) {
	lower := strings.ToLower(state)
	switch {
	// These say for whom a thread waits, whatever system call it waits in.
	case strings.Contains(lower, "lock") && (strings.HasPrefix(lower, "waiting") || lower == "user lock"):
		return kurabe.WaitLock, state
	case lower == "user sleep", d.call == callSleep:
		return kurabe.WaitOther, orElse(state, "sleep")
	case d.state == 'R':
		return kurabe.WaitCPU, kurabe.WaitCPU
	case d.file != "":
		return kurabe.WaitIO, d.file + " " + d.call
	case d.state == 'D':
		return kurabe.WaitIO, "disk"
	case d.call == callClient:
		return kurabe.WaitClient, "network"
	case strings.HasPrefix(lower, "waiting"), lower == "commit", d.call == callWait:
		return kurabe.WaitOther, orElse(state, "another thread")
	case d.state == 0 && (lower == "writing to net" || lower == "reading from net"):
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
