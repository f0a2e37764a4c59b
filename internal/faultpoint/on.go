//go:build fault

package faultpoint

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"
)

// heldLook is how often it is looked whether a test lets go.
const heldLook = 5 * time.Millisecond

// Reach does what the armed point says, if it is this one.
func Reach(when, step string) {
	file := os.Getenv("KURABE_FAULT")
	if file == "" {
		return
	}
	text, err := os.ReadFile(file)
	point, held, hold := strings.Cut(strings.TrimSpace(string(text)), " ")
	if err != nil || point != when+":"+step || os.Remove(file) != nil {
		return
	}
	if !hold {
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	if os.WriteFile(held, nil, 0o600) != nil {
		return // the test waits in vain, and says so
	}
	for {
		if _, err := os.Lstat(held); errors.Is(err, fs.ErrNotExist) {
			return
		}
		time.Sleep(heldLook)
	}
}
