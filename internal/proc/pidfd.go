package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// handle is one process, held by a pidfd. All Process values of one child share
// its handle, so that the exit status reaches each of them.
type handle struct {
	pid   int
	pidfd int
	child bool // ours to reap

	mu     sync.Mutex // guards what follows
	reaped bool
	exit   *ExitStatus
}

// children are the processes that we started and have not reaped: a process found
// again by its record must meet the handle that can reap it.
var children = struct {
	sync.Mutex
	byPID map[int]*handle
}{byPID: map[int]*handle{}}

// openHandle fails with os.ErrProcessDone if there is no such process.
func openHandle(pid int) (*handle, error) {
	children.Lock()
	known := children.byPID[pid]
	children.Unlock()
	if known != nil {
		return known, nil
	}
	return newHandle(pid, false)
}

// adoptChild makes the handle of a process that we have just started. Nobody else
// reaps it, so its pid cannot have been reused.
func adoptChild(pid int) (*handle, error) {
	h, err := newHandle(pid, true)
	if err != nil {
		return nil, err
	}
	children.Lock()
	children.byPID[pid] = h
	children.Unlock()
	return h, nil
}

func newHandle(pid int, child bool) (*handle, error) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	switch {
	case errors.Is(err, unix.ESRCH), errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT):
		return nil, os.ErrProcessDone // gone, or the number is a thread's by now
	case errors.Is(err, unix.ENOSYS):
		return nil, errors.New("this kernel has no pidfd_open; Linux 5.10 or later is required")
	case err != nil:
		return nil, fmt.Errorf("pidfd of %d: %w", pid, err)
	}
	h := &handle{pid: pid, pidfd: fd, child: child}
	runtime.AddCleanup(h, func(fd int) { _ = unix.Close(fd) }, fd)
	return h, nil
}

// readable: a pidfd becomes readable when the process has run its last code.
func readable(fd int) bool {
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(poll, 0)
		if !errors.Is(err, unix.EINTR) {
			return err != nil || n > 0
		}
	}
}

// gone also reaps, so a dead child stays a zombie only until somebody looks.
func (h *handle) gone() bool {
	if !readable(h.pidfd) {
		return false
	}
	h.reap()
	return true
}

func (h *handle) reap() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.child || h.reaped {
		return
	}
	var status syscall.WaitStatus
	pid, err := syscall.Wait4(h.pid, &status, syscall.WNOHANG, nil)
	if pid != h.pid && !errors.Is(err, syscall.ECHILD) {
		return
	}
	if pid == h.pid {
		h.exit = exitStatus(status)
	}
	h.reaped = true
	children.Lock()
	if children.byPID[h.pid] == h {
		delete(children.byPID, h.pid)
	}
	children.Unlock()
}

func (h *handle) signal(sig syscall.Signal) error {
	err := unix.PidfdSendSignal(h.pidfd, sig, nil, 0)
	runtime.KeepAlive(h)
	if errors.Is(err, unix.ESRCH) {
		return os.ErrProcessDone
	}
	if err != nil {
		return fmt.Errorf("signal %v to pid %d: %w", sig, h.pid, err)
	}
	return nil
}

// wait parks only a goroutine: the pidfd sits in the runtime's epoll. Each call has
// its own descriptor, as readers of one os.File would queue behind each other.
func (h *handle) wait(ctx context.Context) error {
	fd, err := unix.FcntlInt(uintptr(h.pidfd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("wait for pid %d: %w", h.pid, err)
	}
	file := os.NewFile(uintptr(fd), "pidfd")
	defer file.Close()
	if err := file.SetReadDeadline(time.Time{}); err != nil {
		return fmt.Errorf("wait for pid %d: pidfd cannot be polled: %w", h.pid, err)
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = file.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	err = raw.Read(func(fd uintptr) bool { return readable(int(fd)) })
	if h.gone() {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("wait for pid %d: %w", h.pid, context.Cause(ctx))
	}
	return fmt.Errorf("wait for pid %d: %w", h.pid, err)
}
