package proc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"syscall"
)

// Marks tell the processes of one server from all others. One is enough to be found; a
// server may start and end any number of times under them.
type Marks struct {
	RecordFile string   `json:"record_file,omitempty"` // of its Spec
	LockFile   string   `json:"lock_file,omitempty"`   // of its Spec
	DataDir    string   `json:"data_dir,omitempty"`    // they work in it
	Cgroups    []string `json:"cgroups,omitempty"`     // cgroup.procs files of a group that is its own
}

// Tree is all processes that bear the marks of one server, for whoever has to end them
// while the disk may not answer.
type Tree struct {
	marks Marks

	mu     sync.Mutex // guards what follows
	server Process    // by the record, when last looked at
	dirs   []inode    // the data folder, and what had its name before
	lock   *os.File   // nil until there is one
}

type inode struct{ dev, ino uint64 }

// NewTree knows of nothing yet but the control group: see Look.
func NewTree(marks Marks) *Tree { return &Tree{marks: marks} }

// Look finds out what the files of the marks say now. It alone needs the disk. What is
// missing is no error: it may come, or never have been.
func (t *Tree) Look() error {
	dir, dirErr := statDir(t.marks.DataDir)
	lock, lockErr := openFile(t.marks.LockFile)
	server, found, recordErr := Find(t.marks.RecordFile)
	t.mu.Lock()
	defer t.mu.Unlock()
	if dirErr == nil {
		t.addDirLocked(inode{dir.Dev, dir.Ino})
	}
	if lockErr == nil {
		if t.lock != nil {
			_ = t.lock.Close()
		}
		t.lock = lock
	}
	if recordErr == nil && found {
		t.server = server
	}
	var errs []error
	for _, err := range []error{dirErr, lockErr, recordErr} {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// dirsMax bounds the data folders that are remembered: the number of one that is gone may
// be another folder's by now, but not soon.
const dirsMax = 2

func (t *Tree) addDirLocked(dir inode) {
	if len(t.dirs) > 0 && t.dirs[len(t.dirs)-1] == dir {
		return
	}
	t.dirs = append(t.dirs, dir)
	t.dirs = t.dirs[max(0, len(t.dirs)-dirsMax):]
}

// Kill sends SIGKILL to every process of the tree that it finds, the server first, since it
// makes the others; then it waits until they have ended. It says which it found. Those that
// were made meanwhile are found next time: the tree is dead when nothing is found.
func (t *Tree) Kill(ctx context.Context) ([]int, error) {
	t.mu.Lock()
	server, lock := t.server, t.lock
	h := hunt{self: os.Getpid(), dirs: slices.Clone(t.dirs), hit: map[int]*handle{}}
	t.mu.Unlock()
	if server.Alive() {
		h.strike(server.PID, server.handle)
	}
	for _, file := range t.marks.Cgroups {
		h.group(file)
	}
	h.workers()
	if len(h.hit) == 0 && lock != nil {
		h.holders(lock)
	}
	var found []int
	for pid, handle := range h.hit {
		found = append(found, pid)
		if err := handle.wait(ctx); err != nil {
			h.errs = append(h.errs, err)
		}
	}
	return found, errors.Join(h.errs...)
}

// hunt is one round of Kill.
type hunt struct {
	self int
	dirs []inode
	hit  map[int]*handle
	errs []error
}

func (h *hunt) note(what string, err error) {
	if err != nil && !errors.Is(err, os.ErrProcessDone) && !errors.Is(err, fs.ErrNotExist) {
		h.errs = append(h.errs, fmt.Errorf("%s: %w", what, err))
	}
}

// strike kills one process, unless it has ended: a zombie whose parent does not look is
// no trouble of anybody's.
func (h *hunt) strike(pid int, process *handle) {
	if pid == h.self || h.hit[pid] != nil || process.gone() {
		return
	}
	if err := process.signal(syscall.SIGKILL); err != nil {
		h.note("kill", err)
		return
	}
	h.hit[pid] = process
}

// strikeIf takes the pidfd first and asks second, so that a reused pid is never hit.
func (h *hunt) strikeIf(pid int, still func() bool) {
	if pid == h.self || h.hit[pid] != nil {
		return
	}
	process, err := openHandle(pid)
	if err != nil {
		h.note("kill", err)
		return
	}
	if still() {
		h.strike(pid, process)
	}
}

func (h *hunt) workers() {
	all, err := pids()
	h.note("list processes", err)
	works := func(pid int) bool {
		for _, dir := range h.dirs {
			if worksIn(pid, dir.dev, dir.ino) {
				return true
			}
		}
		return false
	}
	for _, pid := range all {
		if works(pid) {
			h.strikeIf(pid, func() bool { return works(pid) })
		}
	}
}
