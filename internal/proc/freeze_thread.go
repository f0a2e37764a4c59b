package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// stopPause is between two looks at threads that have not stopped yet.
	stopPause = 100 * time.Microsecond
	// pfIOWorker is in the flags of a thread that the kernel made for io_uring. It
	// runs nothing of the process's, only what that has asked for before.
	pfIOWorker = 0x10
	// The si_code of a child's news.
	cldExited, cldKilled, cldDumped, cldTrapped, cldStopped = 1, 2, 3, 4, 5
)

// tracee is one thread of a process that is being frozen.
type tracee struct {
	stopped bool
	signal  int // that it was about to receive when it stopped; it gets it when it goes on
}

// tracer stops the threads of one process. All of it runs on one thread of ours, as
// the kernel knows a tracer by its thread.
type tracer struct {
	process Process
	threads map[int]*tracee
	until   time.Time // when to give up stopping
}

// stopAll stops thread after thread until a look finds none that is new. Only what runs
// can make new ones, and those that are made by a traced thread are born stopped, so it
// comes to an end.
func (t *tracer) stopAll(ctx context.Context) error {
	for {
		fresh, err := t.seizeNew()
		if err != nil {
			return err
		}
		if err := t.awaitStops(ctx); err != nil {
			return err
		}
		if fresh == 0 {
			break
		}
	}
	if len(t.threads) == 0 || !t.process.Alive() {
		return &FreezeError{PID: t.process.PID, Reason: "it has ended", Err: os.ErrProcessDone}
	}
	return nil
}

// seizeNew traces the threads that are not traced yet, and says how many there were.
func (t *tracer) seizeNew() (fresh int, err error) {
	task := fmt.Sprintf("/proc/%d/task", t.process.PID)
	dir, err := os.Open(task)
	if err != nil {
		return 0, &FreezeError{PID: t.process.PID, Reason: "cannot list its threads", Err: err}
	}
	names, err := dir.Readdirnames(-1)
	if err = errors.Join(err, dir.Close()); err != nil && !gone(err) {
		return 0, &FreezeError{PID: t.process.PID, Reason: "cannot list its threads", Err: err}
	}
	for _, name := range names {
		tid, err := strconv.Atoi(name)
		if err != nil || t.threads[tid] != nil {
			continue
		}
		stat, err := os.ReadFile(task + "/" + name + "/stat")
		if err != nil {
			if gone(err) {
				continue
			}
			return fresh, &FreezeError{PID: t.process.PID, Reason: "thread " + name, Err: err}
		}
		if isIOWorker(stat) {
			continue
		}
		if err := t.seize(tid); err != nil {
			return fresh, err
		}
		fresh++
	}
	return fresh, nil
}

// isIOWorker reads field 9 of proc(5)'s stat, the kernel's flags.
func isIOWorker(stat []byte) bool {
	const flagsField = 9 - 3
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= flagsField {
		return false
	}
	flags, err := strconv.ParseUint(string(fields[flagsField]), 10, 64)
	return err == nil && flags&pfIOWorker != 0
}

// seize traces one thread and asks it to stop. PTRACE_O_EXITKILL is what must never
// be set here: the server would die with us.
func (t *tracer) seize(tid int) error {
	err := ptrace(unix.PTRACE_SEIZE, tid, unix.PTRACE_O_TRACECLONE)
	if errors.Is(err, unix.EPERM) {
		if tracerOf(t.process.PID, tid) == strconv.Itoa(unix.Gettid()) {
			// Made by a traced thread, so it is ours from birth, and stops by itself.
			t.threads[tid] = &tracee{}
			return nil
		}
		if isEnding(t.process.PID, tid) {
			return nil // The kernel says the same of one that is past its last instruction.
		}
		return &FreezeError{PID: t.process.PID, Reason: whyNotTraced(t.process.PID, tid), Err: fs.ErrPermission}
	}
	if errors.Is(err, unix.ESRCH) {
		return nil // It has ended.
	}
	if err != nil {
		return &FreezeError{PID: t.process.PID, Reason: "trace thread " + strconv.Itoa(tid), Err: err}
	}
	t.threads[tid] = &tracee{}
	if err := ptrace(unix.PTRACE_INTERRUPT, tid, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return &FreezeError{PID: t.process.PID, Reason: "interrupt thread " + strconv.Itoa(tid), Err: err}
	}
	return nil
}

// whyNotTraced tells a debugger that is there from a right that is missing.
func whyNotTraced(pid, tid int) string {
	if by := tracerOf(pid, tid); by != "" {
		return "pid " + by + " traces it"
	}
	return "no permission to trace it"
}

// isEnding says whether a thread has ended, or is dead and waits to be buried: "State" in
// proc(5).
func isEnding(pid, tid int) bool {
	state, err := statusOf(pid, tid, "State")
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) || strings.HasPrefix(state, "Z") || strings.HasPrefix(state, "X")
}

// tracerOf is the thread that traces a thread, "" for none: "TracerPid" in proc(5).
func tracerOf(pid, tid int) string {
	by, _ := statusOf(pid, tid, "TracerPid")
	return strings.TrimPrefix(by, "0") // no number begins with it but that of nobody
}

// statusOf is a field of a thread's status, "" when it is not there.
func statusOf(pid, tid int, field string) (string, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/status", pid, tid))
	if err != nil {
		return "", err
	}
	_, after, _ := bytes.Cut(status, []byte("\n"+field+":\t"))
	value, _, _ := bytes.Cut(after, []byte("\n"))
	return string(value), nil
}

// awaitStops waits until every traced thread has stopped or ended.
func (t *tracer) awaitStops(ctx context.Context) error {
	for {
		running := 0
		for tid, thread := range t.threads {
			if thread.stopped {
				continue
			}
			news, known := childNews(tid)
			switch {
			case !known || news.code == cldExited || news.code == cldKilled || news.code == cldDumped:
				if tid == t.process.PID {
					return &FreezeError{PID: t.process.PID, Reason: "it has ended", Err: os.ErrProcessDone}
				}
				reapThread(tid)
				delete(t.threads, tid)
			case news.code == cldTrapped || news.code == cldStopped:
				thread.stopped, thread.signal = true, news.pending()
			default:
				running++
			}
		}
		if running == 0 {
			return nil
		}
		// The news of the first thread's end comes after that of all others, of which one
		// may be new and unknown.
		if st, err := readStat(strconv.Itoa(t.process.PID)); err != nil || st.zombie() {
			return &FreezeError{PID: t.process.PID, Reason: "it has ended", Err: os.ErrProcessDone}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if time.Now().After(t.until) {
			return &FreezeError{PID: t.process.PID, Reason: fmt.Sprintf("%d of %d threads did not stop in time", running, len(t.threads))}
		}
		time.Sleep(stopPause)
	}
}

// release lets every thread go. An error says that one of them had not stood still all
// the time: nothing but us lets a stopped thread go but its death.
func (t *tracer) release() error {
	var err error
	for tid, thread := range t.threads {
		// One that has not stopped yet goes on when our thread ends, which is also when
		// the dead are let go.
		if thread.stopped && ptrace(unix.PTRACE_DETACH, tid, thread.signal) != nil {
			err = &FreezeError{PID: t.process.PID, Reason: "it ended meanwhile", Err: os.ErrProcessDone}
		}
	}
	return err
}

// news is what the kernel tells of a child or a traced thread.
type news struct{ code, status int }

// pending is the signal that the thread was about to receive, 0 for none. The other
// stops carry an event above the number.
func (n news) pending() int {
	if n.code != cldTrapped || n.status>>8 != 0 {
		return 0
	}
	return n.status
}

// childNews looks without taking the news away: the exit of a process is its handle's
// to reap. known is false of what is neither a child of ours nor traced by us.
func childNews(tid int) (n news, known bool) {
	var info unix.Siginfo
	const options = unix.WEXITED | unix.WSTOPPED | unix.WNOHANG | unix.WNOWAIT | unix.WALL
	for {
		err := unix.Waitid(unix.P_PID, tid, &info, options, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return n, false
		}
		break
	}
	if info.Signo == 0 {
		return n, true
	}
	// The fields of a SIGCHLD after the head and its padding: pid, uid, status.
	const statusAt = 24
	raw := (*[unsafe.Sizeof(info)]byte)(unsafe.Pointer(&info))
	return news{code: int(info.Code), status: int(*(*int32)(unsafe.Pointer(&raw[statusAt])))}, true
}

// reapThread buries a thread that ended while we traced it.
func reapThread(tid int) {
	var status unix.WaitStatus
	_, _ = unix.Wait4(tid, &status, unix.WNOHANG|unix.WALL, nil)
}

// ptrace makes one request that needs no address.
func ptrace(request, tid, data int) error {
	_, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, uintptr(request), uintptr(tid), 0, uintptr(data), 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
