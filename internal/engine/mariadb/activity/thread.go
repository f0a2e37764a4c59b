package activity

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// threadName is how the guard names the thread of a connection.
const threadName = "sql-"

// threads finds the threads of connections in a server's process.
type threads struct {
	proc string           // the folder of the process below /proc
	ids  map[int64]string // threads by the numbers of connections
}

func newThreads(pid int) *threads {
	return &threads{proc: filepath.Join("/proc", strconv.Itoa(pid)), ids: map[int64]string{}}
}

// find returns the thread of a connection, "" when there is none. A thread serves one
// connection after the other, so its name is looked at each time.
func (t *threads) find(connection int64, look *bool) string {
	if id := t.ids[connection]; id != "" && t.name(id) == connection {
		return id
	}
	if *look {
		return "" // all were looked at within this list
	}
	*look = true
	t.ids = map[int64]string{}
	list, _ := os.ReadDir(filepath.Join(t.proc, "task"))
	for _, e := range list {
		if n := t.name(e.Name()); n != 0 {
			t.ids[n] = e.Name()
		}
	}
	return t.ids[connection]
}

// name is the number of the connection that a thread serves, 0 for none.
func (t *threads) name(id string) int64 {
	raw, _ := os.ReadFile(filepath.Join(t.proc, "task", id, "comm"))
	number, ours := strings.CutPrefix(strings.TrimSpace(string(raw)), threadName)
	if !ours {
		return 0
	}
	n, _ := strconv.ParseInt(number, 10, 64)
	return n
}

// doing is in what state the kernel has a thread.
type doing struct {
	state byte   // of proc(5): R, S, D; 0: unknown
	call  string // the kind of its system call: one of the names below, "" for another or none
	file  string // kind of the file on which it works, if it does
}

// Kinds of system calls.
const (
	callRead   = "read"
	callWrite  = "write"
	callSync   = "sync"
	callWait   = "wait" // for another thread
	callSleep  = "sleep"
	callClient = "client"
)

var calls = map[int64]string{
	unix.SYS_PREAD64: callRead, unix.SYS_PREADV: callRead, unix.SYS_IO_GETEVENTS: callRead,
	unix.SYS_PWRITE64: callWrite, unix.SYS_PWRITEV: callWrite,
	unix.SYS_FALLOCATE: callWrite, unix.SYS_FTRUNCATE: callWrite,
	unix.SYS_FSYNC: callSync, unix.SYS_FDATASYNC: callSync, unix.SYS_SYNC_FILE_RANGE: callSync,
	unix.SYS_FUTEX: callWait, unix.SYS_CLOCK_NANOSLEEP: callSleep, unix.SYS_NANOSLEEP: callSleep,
	unix.SYS_RECVFROM: callClient, unix.SYS_RECVMSG: callClient, unix.SYS_SENDTO: callClient, unix.SYS_SENDMSG: callClient,
	unix.SYS_PPOLL: callClient, sysPoll: callClient,
	unix.SYS_READ: callRead, unix.SYS_WRITE: callWrite,
}

// doing asks the kernel what a thread does.
func (t *threads) doing(id string) (d doing) {
	dir := filepath.Join(t.proc, "task", id)
	raw, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return d
	}
	// The name, which ends at the last ), may hold anything.
	if _, rest, ok := strings.Cut(string(raw[strings.LastIndexByte(string(raw), ')')+1:]), " "); ok && rest != "" {
		d.state = rest[0]
	}
	// Without the right to trace the process this cannot be read.
	raw, err = os.ReadFile(filepath.Join(dir, "syscall"))
	fields := strings.Fields(string(raw))
	if err != nil || len(fields) < 2 {
		return d
	}
	number, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return d
	}
	d.call = calls[number]
	if d.call == callRead || d.call == callWrite || d.call == callSync {
		fd, err := strconv.ParseUint(strings.TrimPrefix(fields[1], "0x"), 16, 31)
		if err != nil {
			return d
		}
		name, _ := os.Readlink(filepath.Join(t.proc, "fd", strconv.FormatUint(fd, 10)))
		if d.file = fileKind(name); d.file == "" {
			d.call = callClient
		}
	}
	return d
}

// fileKind names the kind of a file by its path; "" is a socket or a pipe.
func fileKind(path string) string {
	base := filepath.Base(path)
	switch {
	case strings.HasPrefix(path, "socket:"), strings.HasPrefix(path, "pipe:"):
		return ""
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
