//go:build fault

package agent

import (
	"os"
	"strings"
	"syscall"
)

// faultPoint ends the service at once, without any clean-up, when the file that
// KURABE_FAULT names holds "before:STEP" or "after:STEP". The file is removed
// first, so that the next service lives.
func faultPoint(when, step string) {
	file := os.Getenv("KURABE_FAULT")
	if file == "" {
		return
	}
	data, err := os.ReadFile(file)
	if err != nil || strings.TrimSpace(string(data)) != when+":"+step {
		return
	}
	if os.Remove(file) == nil {
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}
