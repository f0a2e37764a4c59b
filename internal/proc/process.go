package proc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Process is a long-lived process that we started or found again. The zero value
// is a process that is gone. Copies stand for the same process.
type Process struct {
	PID       int
	StartTime uint64 // clock ticks since boot; with PID, unique within a boot
	Tags      map[string]string

	handle *handle
}

// ExitStatus says how a process ended.
type ExitStatus struct {
	Code   int            // meaningful if Signal is 0
	Signal syscall.Signal // 0 if it exited by itself
}

func (e ExitStatus) String() string {
	if e.Signal != 0 {
		return fmt.Sprintf("killed by signal %d (%v)", int(e.Signal), e.Signal)
	}
	return fmt.Sprintf("exit status %d", e.Code)
}

func exitStatus(status syscall.WaitStatus) *ExitStatus {
	if status.Signaled() {
		return &ExitStatus{Signal: status.Signal()}
	}
	return &ExitStatus{Code: status.ExitStatus()}
}

// Alive is false as soon as the process has ended, reaped or not.
func (p Process) Alive() bool { return p.handle != nil && !p.handle.gone() }

// Signal reaches this process or none: it gives os.ErrProcessDone when it is gone,
// even if another process has the pid by now.
func (p Process) Signal(sig syscall.Signal) error {
	if p.handle == nil {
		return os.ErrProcessDone
	}
	return p.handle.signal(sig)
}

// Wait returns nil when the process has ended, whoever its parent is, or an error
// that wraps the context's. It costs a goroutine, not a thread.
func (p Process) Wait(ctx context.Context) error {
	if p.handle == nil {
		return nil
	}
	return p.handle.wait(ctx)
}

// Exit gives the exit status if it is known: of our own children, and from Linux
// 6.15 also of adopted processes, once init has reaped them.
func (p Process) Exit() (ExitStatus, bool) {
	if p.handle == nil || !p.handle.gone() {
		return ExitStatus{}, false
	}
	h := p.handle
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.exit == nil {
		h.exit = exitOfStranger(h.pidfd)
	}
	runtime.KeepAlive(h)
	if h.exit == nil {
		return ExitStatus{}, false
	}
	return *h.exit, true
}

func exitOfStranger(pidfd int) *ExitStatus {
	info := unix.PidfdInfo{Mask: unix.PIDFD_INFO_EXIT}
	if unix.IoctlPidfdInfo(pidfd, &info) != nil || info.Mask&unix.PIDFD_INFO_EXIT == 0 {
		return nil
	}
	return exitStatus(syscall.WaitStatus(uint32(info.Exit_code)))
}

// Find adopts the process of a record. It is found if the pid is alive, has the
// recorded start time, and the machine has not rebooted since. A missing record is
// not an error; one that cannot be read is, for it hides a process.
func Find(recordFile string) (Process, bool, error) {
	rec, found, err := readRecord(recordFile)
	if err != nil || !found {
		return Process{}, false, err
	}
	boot, err := bootID()
	if err != nil {
		return Process{}, false, err
	}
	if rec.BootID != boot {
		return Process{}, false, nil
	}
	return openRecord(rec)
}

// openRecord takes the pidfd first and checks identity second, so the process checked is
// the process held.
func openRecord(rec record) (Process, bool, error) {
	h, err := openHandle(rec.PID)
	if errors.Is(err, os.ErrProcessDone) {
		return Process{}, false, nil
	}
	if err != nil {
		return Process{}, false, err
	}
	st, err := readStat(fmt.Sprint(rec.PID))
	if err != nil && !gone(err) {
		return Process{}, false, err
	}
	if err != nil || st.startTime != rec.StartTime || h.gone() {
		return Process{}, false, nil
	}
	return Process{rec.PID, rec.StartTime, maps.Clone(rec.Tags), h}, true, nil
}
