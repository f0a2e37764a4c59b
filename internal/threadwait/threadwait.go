package threadwait

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Threads are those of a process whose names are a prefix and a number, as a thread that serves a
// connection may be named after it.
type Threads struct {
	proc   string // the folder of the process below /proc
	prefix string
	ids    map[int64]string // threads by their numbers
}

// New returns the threads of a process.
func New(pid int, prefix string) *Threads {
	return &Threads{proc: filepath.Join("/proc", strconv.Itoa(pid)), prefix: prefix, ids: map[int64]string{}}
}

// Find returns the id of the thread with a number, "" when there is none. A name may change, so
// it is looked at each time. Of many numbers in turn, looked has all threads be read at most once.
func (t *Threads) Find(number int64, looked *bool) string {
	if id := t.ids[number]; id != "" && t.name(id) == number {
		return id
	}
	if *looked {
		return ""
	}
	*looked = true
	t.ids = map[int64]string{}
	list, _ := os.ReadDir(filepath.Join(t.proc, "task"))
	for _, e := range list {
		if n := t.name(e.Name()); n != 0 {
			t.ids[n] = e.Name()
		}
	}
	return t.ids[number]
}

// name is the number in a thread's name, 0 for none.
func (t *Threads) name(id string) int64 {
	raw, _ := os.ReadFile(filepath.Join(t.proc, "task", id, "comm"))
	number, ours := strings.CutPrefix(strings.TrimSpace(string(raw)), t.prefix)
	if !ours {
		return 0
	}
	n, _ := strconv.ParseInt(number, 10, 64)
	return n
}

// State is in what state the kernel has a thread.
type State struct {
	Run  byte   // of proc(5): R, S, D; 0: unknown
	Call string // kind of its system call: one of the names below, "" for another or none
	File string // path of the file on which it works, if it does
}

// Kinds of system calls.
const (
	Read   = "read"
	Write  = "write"
	Sync   = "sync"
	Wait   = "wait" // for another thread
	Sleep  = "sleep"
	Socket = "socket"
)

var calls = map[int64]string{
	unix.SYS_PREAD64: Read, unix.SYS_PREADV: Read, unix.SYS_IO_GETEVENTS: Read,
	unix.SYS_PWRITE64: Write, unix.SYS_PWRITEV: Write,
	unix.SYS_FALLOCATE: Write, unix.SYS_FTRUNCATE: Write,
	unix.SYS_FSYNC: Sync, unix.SYS_FDATASYNC: Sync, unix.SYS_SYNC_FILE_RANGE: Sync,
	unix.SYS_FUTEX: Wait, unix.SYS_CLOCK_NANOSLEEP: Sleep, unix.SYS_NANOSLEEP: Sleep,
	unix.SYS_RECVFROM: Socket, unix.SYS_RECVMSG: Socket, unix.SYS_SENDTO: Socket, unix.SYS_SENDMSG: Socket,
	unix.SYS_PPOLL: Socket, sysPoll: Socket,
	unix.SYS_READ: Read, unix.SYS_WRITE: Write,
}

// State asks the kernel what a thread does.
func (t *Threads) State(id string) (s State) {
	dir := filepath.Join(t.proc, "task", id)
	raw, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return s
	}
	// The name, which ends at the last ), may hold anything.
	if _, rest, ok := strings.Cut(string(raw[strings.LastIndexByte(string(raw), ')')+1:]), " "); ok && rest != "" {
		s.Run = rest[0]
	}
	// Without the right to trace the process this cannot be read.
	raw, err = os.ReadFile(filepath.Join(dir, "syscall"))
	fields := strings.Fields(string(raw))
	if err != nil || len(fields) < 2 {
		return s
	}
	number, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return s
	}
	s.Call = calls[number]
	if s.Call == Read || s.Call == Write || s.Call == Sync {
		fd, err := strconv.ParseUint(strings.TrimPrefix(fields[1], "0x"), 16, 31)
		if err != nil {
			return s
		}
		s.File, _ = os.Readlink(filepath.Join(t.proc, "fd", strconv.FormatUint(fd, 10)))
		if strings.HasPrefix(s.File, "socket:") || strings.HasPrefix(s.File, "pipe:") {
			s.Call, s.File = Socket, ""
		}
	}
	return s
}
