package proc

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Owned lists the processes that run as a user, by any of its ids. Zombies do not count.
func Owned(uid int) ([]int, error) {
	all, err := pids()
	if err != nil {
		return nil, err
	}
	var found []int
	for _, pid := range all {
		if runsAs(pid, uid) {
			found = append(found, pid)
		}
	}
	return found, nil
}

// runsAs reads the ids themselves: the owner of /proc/PID is root where a process
// cannot be traced.
func runsAs(pid, uid int) bool {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return false
	}
	lines := bufio.NewScanner(bytes.NewReader(raw))
	zombie := false
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ":")
		switch name {
		case "State":
			zombie = strings.HasPrefix(strings.TrimSpace(value), "Z")
		case "Uid":
			for _, id := range strings.Fields(value) {
				if id == strconv.Itoa(uid) {
					return !zombie
				}
			}
			return false
		}
	}
	return false
}

// KillOwned kills whatever runs as a user, and returns when nothing does any more. The
// user must be nobody's else: an id that was given for one purpose.
func KillOwned(ctx context.Context, uid int) error {
	if uid <= 0 || uid == os.Getuid() {
		return fmt.Errorf("kill processes of uid %d: not the account of a server", uid)
	}
	ctx, cancel := context.WithTimeout(ctx, killSurvivorsTime)
	defer cancel()
	for range killRoundsMax {
		found, err := Owned(uid)
		if err != nil || len(found) == 0 {
			return err
		}
		if err := killEach(ctx, found, func(pid int) bool { return runsAs(pid, uid) }); err != nil {
			return fmt.Errorf("kill processes of uid %d: %w", uid, err)
		}
	}
	return fmt.Errorf("kill processes of uid %d: new processes keep starting", uid)
}

// killEach kills those of which is true once we hold them, and waits for their end.
func killEach(ctx context.Context, found []int, is func(pid int) bool) error {
	var dying []*handle
	for _, pid := range found {
		h, err := openHandle(pid)
		if errors.Is(err, os.ErrProcessDone) {
			continue
		}
		if err != nil {
			return err
		}
		// Again, now that the pidfd is ours: the pid may have been reused.
		if !is(pid) {
			continue
		}
		if err := h.signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return err
		}
		dying = append(dying, h)
	}
	for _, h := range dying {
		if err := h.wait(ctx); err != nil {
			return err
		}
	}
	return nil
}
