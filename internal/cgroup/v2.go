package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

func rmdir(dir string) error {
	if err := unix.Rmdir(dir); err != nil {
		return &fs.PathError{Op: "rmdir", Path: dir, Err: err}
	}
	return nil
}

// movesMax bounds emptying a group whose processes fork meanwhile.
const movesMax = 16

// enableV2 hands the v2 controllers down to our parent group and its children.
func (l Levers) enableV2() error {
	for _, each := range []struct {
		c     controller
		lever Lever
	}{{cpuController, l.CPU}, {memoryController, l.Memory}, {ioController, l.IO}} {
		if !each.lever.Enforceable || each.lever.Version != 2 {
			continue
		}
		base := each.lever.base
		parent := filepath.Join(base, l.parent)
		if err := os.MkdirAll(parent, 0o755); err != nil {
			return err
		}
		err := enable(base, each.c.v2)
		for range movesMax {
			if !errors.Is(err, unix.EBUSY) {
				break
			}
			// Below the top, a group has either processes or children with limits. This
			// is our own group (a delegated service, or a container's): its processes,
			// ourselves among them, go into a leaf.
			if err = moveAll(base, filepath.Join(base, l.parent+"-service")); err == nil {
				err = enable(base, each.c.v2)
			}
		}
		if err != nil {
			return err
		}
		if err := enable(parent, each.c.v2); err != nil {
			return err
		}
	}
	return nil
}

func enable(dir, controller string) error {
	if hasWord(filepath.Join(dir, "cgroup.subtree_control"), controller) {
		return nil
	}
	return set(dir, "cgroup.subtree_control", "+"+controller)
}

func moveAll(from, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	pids, err := readPIDs(from)
	if err != nil {
		return err
	}
	for _, pid := range pids {
		err := set(to, procsFile, strconv.Itoa(pid))
		if err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("move pid %d out of %s: %w", pid, from, err)
		}
	}
	return nil
}
