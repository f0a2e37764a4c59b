package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

const procsFile = "cgroup.procs"

// Limits of one group. Zero means no limit, and lifts an earlier one.
type Limits struct {
	CPUQuota    float64 // CPUs, 0.5 is half of one
	MemoryBytes int64   // no swap beyond it

	ReadIOPS, WriteIOPS                     int64
	ReadBytesPerSecond, WriteBytesPerSecond int64
	Device                                  Device // what the I/O limits count on
}

func (l Limits) limitsIO() bool {
	return l.ReadIOPS|l.WriteIOPS|l.ReadBytesPerSecond|l.WriteBytesPerSecond != 0
}

func (l Limits) negative() bool {
	return l.CPUQuota < 0 ||
		min(l.MemoryBytes, l.ReadIOPS, l.WriteIOPS, l.ReadBytesPerSecond, l.WriteBytesPerSecond) < 0
}

// UnsupportedError is a limit that was asked for and cannot be enforced here.
type UnsupportedError struct{ What, Reason string }

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("this host cannot limit %s: %s", e.What, e.Reason)
}

// Retryable: it takes a change of the host.
func (e *UnsupportedError) Retryable() bool { return false }

// Group is one group in every hierarchy that has a lever. The zero value is none.
type Group struct {
	Name   string
	levers Levers
}

// groupName keeps out separators and the dot, with which v2's own files are named.
var groupName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_~-]{0,127}$`)

// Ensure makes the group if it is missing and sets its limits. It does not touch
// the processes that are in it.
func (l Levers) Ensure(name string, limits Limits) (Group, error) {
	if !groupName.MatchString(name) {
		return Group{}, fmt.Errorf("ensure cgroup: %q is not a usable name", name)
	}
	if err := l.check(limits); err != nil {
		return Group{}, err
	}
	if err := l.enableV2(); err != nil {
		return Group{}, fmt.Errorf("ensure cgroup %s: %w", name, err)
	}
	g := Group{name, l}
	for _, dir := range g.dirs() {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return Group{}, fmt.Errorf("ensure cgroup %s: %w", name, err)
		}
	}
	return g, g.Update(limits)
}

// Find gives a group that exists already.
func (l Levers) Find(name string) (Group, bool) {
	g := Group{name, l}
	if !groupName.MatchString(name) {
		return Group{}, false
	}
	return g, slices.ContainsFunc(g.dirs(), exists)
}

// List names the groups of this service, to find those whose instance is gone.
func (l Levers) List() ([]string, error) {
	var names []string
	for _, parent := range l.parents() {
		entries, err := os.ReadDir(parent)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, entry := range entries {
			if entry.IsDir() && !slices.Contains(names, entry.Name()) {
				names = append(names, entry.Name())
			}
		}
	}
	slices.Sort(names)
	return names, nil
}

func (l Levers) check(limits Limits) error {
	switch {
	case limits.negative():
		return fmt.Errorf("a limit is negative: %+v", limits)
	case limits.CPUQuota > 0 && !l.CPU.Enforceable:
		return &UnsupportedError{cpuController.what, l.CPU.Reason}
	case limits.MemoryBytes > 0 && !l.Memory.Enforceable:
		return &UnsupportedError{memoryController.what, l.Memory.Reason}
	case limits.limitsIO() && !l.IO.Enforceable:
		return &UnsupportedError{ioController.what, l.IO.Reason}
	case limits.limitsIO() && limits.Device.IsZero():
		return &UnsupportedError{ioController.what, "the data folder's device is unknown"}
	}
	return nil
}

// Prune removes the service's own folders where no group is left in them, so that
// a service without databases leaves nothing behind.
func (l Levers) Prune() {
	for _, dir := range l.parents() {
		_ = os.Remove(dir) // the kernel refuses while there are groups in it
	}
}

// parents are the folders of this service, each once.
func (l Levers) parents() []string {
	var dirs []string
	add := func(base string) {
		dir := filepath.Join(base, l.parent)
		if base != "" && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	for _, lever := range []Lever{l.CPU, l.Memory, l.IO} {
		if lever.Enforceable {
			add(lever.base)
		}
	}
	add(l.accounting)
	return dirs
}

func (g Group) dirs() []string {
	dirs := g.levers.parents()
	for i := range dirs {
		dirs[i] = filepath.Join(dirs[i], g.Name)
	}
	return dirs
}

// dir is the group's folder for one lever.
func (g Group) dir(l Lever) string { return filepath.Join(l.base, g.levers.parent, g.Name) }

// ProcsFiles are the files that a process is written to in order to join.
func (g Group) ProcsFiles() []string {
	files := g.dirs()
	for i := range files {
		files[i] = filepath.Join(files[i], procsFile)
	}
	return files
}

// Update changes the limits while processes run in the group.
func (g Group) Update(limits Limits) error {
	if err := g.levers.check(limits); err != nil {
		return err
	}
	var errs []error
	for _, each := range []struct {
		c     controller
		lever Lever
		asked bool
		set   func(Limits) error
	}{
		{cpuController, g.levers.CPU, limits.CPUQuota > 0, g.setCPU},
		{memoryController, g.levers.Memory, limits.MemoryBytes > 0, g.setMemory},
		{ioController, g.levers.IO, limits.limitsIO(), g.setIO},
	} {
		if !each.lever.Enforceable {
			continue
		}
		err := each.set(limits)
		// v2 shows only in a group which limits the kernel was built with.
		if errors.Is(err, fs.ErrNotExist) && exists(g.dir(each.lever)) {
			err = nil
			if each.asked {
				err = &UnsupportedError{each.c.what, "this kernel is built without it"}
			}
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("limit %s: %w", g.Name, err)
	}
	return nil
}

// Pids lists the processes in the group.
func (g Group) Pids() ([]int, error) {
	var all []int
	for _, dir := range g.dirs() {
		pids, err := readPIDs(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		all = append(all, pids...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// A process that was killed leaves its group a moment after it is reaped.
const (
	removeTime  = 10 * time.Second
	removePause = 10 * time.Millisecond
)

// Remove waits until the group is empty and removes it. It kills nothing: who does
// not leave in time is named in the error.
func (g Group) Remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, removeTime)
	defer cancel()
	tick := time.NewTicker(removePause)
	defer tick.Stop()
	for {
		err := g.removeDirs()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			pids, _ := g.Pids()
			return fmt.Errorf("remove cgroup %s: still in it: %v: %w", g.Name, pids, errors.Join(err, context.Cause(ctx)))
		case <-tick.C:
		}
	}
}

func (g Group) removeDirs() error {
	var errs []error
	for _, dir := range g.dirs() {
		// Not os.Remove: its fallback to unlink hides the reason.
		if err := rmdir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
