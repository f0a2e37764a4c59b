package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// killFile of v2 ends a whole group at one stroke, from Linux 5.14 on.
const killFile = "cgroup.kill"

// killTime bounds how long a group may take to end. Its processes get SIGKILL, which only
// the kernel itself can hold up.
const killTime = 30 * time.Second

// Kill ends every process of the group, whoever started it and whatever has become of its
// session, and returns when none is left. Where the kernel cannot do that at one stroke it
// is done until nobody is left.
func (g Group) Kill(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, killTime)
	defer cancel()
	tick := time.NewTicker(removePause)
	defer tick.Stop()
	for {
		for _, dir := range g.dirs() {
			err := strike(filepath.Join(dir, killFile))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("kill cgroup %s: %w", g.Name, err)
			}
		}
		pids, err := g.Pids()
		if err != nil || len(pids) == 0 {
			return err
		}
		for _, pid := range pids {
			g.killMember(pid)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("kill cgroup %s: still in it: %v: %w", g.Name, pids, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// strike writes to a file of the kernel, and makes none.
func strike(path string) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString("1")
	return errors.Join(err, file.Close())
}

// killMember kills a process that is in the group: looked at again once we hold it, as the
// number may be another's by now.
func (g Group) killMember(pid int) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	for _, dir := range g.dirs() {
		pids, err := readPIDs(dir)
		if err != nil {
			continue
		}
		for _, member := range pids {
			if member == pid {
				_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) // It may be gone.
				return
			}
		}
	}
}
