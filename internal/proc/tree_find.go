package proc

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// group kills the members of a control group: by one word where the kernel has it, which no
// fork outruns, but not where it would hit ourselves.
func (h *hunt) group(procsFile string) {
	members, err := groupMembers(procsFile)
	h.note("list "+procsFile, err)
	if len(members) == 0 {
		return
	}
	// Known before the word is said: who has ended by then cannot be told from who never was.
	processes := map[int]*handle{}
	for _, pid := range members {
		if process, err := openHandle(pid); err != nil {
			h.note("kill", err)
		} else {
			processes[pid] = process
		}
	}
	still, err := groupMembers(procsFile)
	h.note("list "+procsFile, err)
	killed := false
	if !slices.Contains(members, h.self) {
		kill := filepath.Join(filepath.Dir(procsFile), "cgroup.kill") // v2, Linux 5.14
		killed = writeExisting(kill, "1") == nil
	}
	for pid, process := range processes {
		switch {
		case !slices.Contains(still, pid) || h.hit[pid] != nil: // another one may have the number
		case killed:
			h.hit[pid] = process
		default:
			h.strike(pid, process)
		}
	}
}

func writeExisting(path, text string) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	_ = file.Close() // The kernel has answered already.
	return err
}

func groupMembers(procsFile string) ([]int, error) {
	raw, err := os.ReadFile(procsFile)
	if err != nil {
		return nil, err
	}
	var members []int
	for _, word := range strings.Fields(string(raw)) {
		if pid, err := strconv.Atoi(word); err == nil && pid > 0 {
			members = append(members, pid)
		}
	}
	return members, nil
}

// holders kills who keeps the server's lock without working in its folder: a command of the
// server's that went elsewhere, or a shim that has not come there yet. It reads what every
// process of the machine has open, so it is for when nothing else is left.
func (h *hunt) holders(lock *os.File) {
	var want unix.Stat_t
	free := false
	h.note("look at lock", onFD(lock, func(fd int) error {
		if err := unix.Fstat(fd, &want); err != nil {
			return err
		}
		free = unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB) == nil
		if free {
			return unix.Flock(fd, unix.LOCK_UN)
		}
		return nil
	}))
	if free || want.Ino == 0 {
		return
	}
	all, err := pids()
	h.note("list processes", err)
	for _, pid := range all {
		if pid != h.self && ofServer(pid, want.Dev, want.Ino) {
			h.strikeIf(pid, func() bool { return ofServer(pid, want.Dev, want.Ino) })
		}
	}
}

// ofServer: a lock that does not close on exec was handed down from a shim. Otherwise it is
// the service's own, at work on the folder (see Hold), which is to live; or a shim's.
func ofServer(pid int, dev, ino uint64) bool {
	info, ok := lockedFD(pid, dev, ino)
	if !ok {
		return false
	}
	line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err == nil && bytes.HasPrefix(line, []byte("kurabe\x00shim\x00")) {
		return true
	}
	_, flags, _ := strings.Cut(info, "flags:\t")
	flags, _, _ = strings.Cut(flags, "\n")
	bits, err := strconv.ParseUint(flags, 8, 64)
	return err == nil && bits&unix.O_CLOEXEC == 0
}
