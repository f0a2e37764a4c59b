package proc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// StartError says at which step a start failed. Nothing of it runs any more.
type StartError struct {
	Name, Step, Message string
	Err                 error // the cause, as errno or *LockHeldError; may be nil
}

func (e *StartError) Error() string {
	return fmt.Sprintf("start %s: %s: %s", e.Name, e.Step, e.Message)
}

func (e *StartError) Unwrap() error { return e.Err }

// Retryable: only a held lock ends by waiting.
func (e *StartError) Retryable() bool { return errors.Is(e.Err, ErrLockHeld) }

// A start is a fork, some system calls and an exec. Half a minute means that the
// file system of the lock or the log hangs.
const startTimeout = 30 * time.Second

// killTimeout bounds waiting for a process after SIGKILL: longer, and it hangs in
// the kernel, out of everybody's reach.
const killTimeout = 10 * time.Second

// Start runs a long-lived process and returns once it has become Argv. It needs a
// lock file and a record file. After an error no process of it is left; if our own
// death interrupts it, Find tells what came of it.
func Start(ctx context.Context, spec Spec) (Process, error) {
	spec = spec.withDefaults()
	if err := spec.check(); err != nil {
		return Process{}, fmt.Errorf("start %w", err)
	}
	if spec.LockFile == "" || spec.RecordFile == "" {
		return Process{}, fmt.Errorf("start %s: a lock file and a record file are needed", spec.Name)
	}
	shim, err := prepareShim(order{Spec: spec})
	if err != nil {
		return Process{}, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	defer shim.close()
	if err := shim.cmd.Start(); err != nil {
		return Process{}, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	pid := shim.cmd.Process.Pid
	h, err := adoptChild(pid)
	if err != nil {
		_ = shim.cmd.Process.Kill()
		_ = shim.cmd.Wait()
		return Process{}, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	_ = shim.cmd.Process.Release() // The handle reaps from here on.

	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	st, statErr := readStat(fmt.Sprint(pid))
	if err := errors.Join(shim.handshake(ctx), statErr); err != nil {
		abandon(spec, h)
		return Process{}, err
	}
	return Process{pid, st.startTime, spec.Tags, h}, nil
}

// abandon makes an error of Start mean that nothing runs and nothing is recorded.
func abandon(spec Spec, h *handle) {
	_ = h.signal(syscall.SIGKILL)
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	if h.wait(ctx) == nil {
		dropRecord(spec, h.pid)
	}
}

// shimCommand is a shim about to be started, with the pipes to talk to it.
type shimCommand struct {
	cmd        *exec.Cmd
	name       string
	lockFile   string
	order      []byte
	orderWrite *os.File
	reportRead *os.File
	theirs     []*os.File // the shim's ends
}

func prepareShim(o order) (*shimCommand, error) {
	// A program that does not do as a shim what a shim does would start itself for ever.
	if IsShim() {
		return nil, errors.New("started as a shim, but ran as a program: main must check IsShim first")
	}
	raw, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	if len(raw) > orderBytesMax {
		return nil, fmt.Errorf("order of %d bytes is longer than %d", len(raw), orderBytesMax)
	}
	orderRead, orderWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	reportRead, reportWrite, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, orderRead.Close(), orderWrite.Close())
	}
	// This link, not our path: after an upgrade on disk we are still the old
	// program, and the shim must speak our version of the order.
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{"kurabe", "shim", o.Name}
	cmd.Env = []string{}
	cmd.Dir = "/"
	cmd.ExtraFiles = []*os.File{orderRead, reportWrite} // shimOrderFD, shimReportFD
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if o.Seclude != nil {
		cmd.SysProcAttr.Cloneflags = secludedSpaces
	}
	return &shimCommand{
		cmd: cmd, name: o.Name, lockFile: o.LockFile, order: raw,
		orderWrite: orderWrite, reportRead: reportRead,
		theirs: []*os.File{orderRead, reportWrite},
	}, nil
}

func (s *shimCommand) close() {
	for _, file := range append(s.theirs, s.orderWrite, s.reportRead) {
		_ = file.Close() // Some are closed already.
	}
}

// handshake sends the order and waits until the shim has become the program.
func (s *shimCommand) handshake(ctx context.Context) error {
	for _, file := range s.theirs {
		_ = file.Close()
	}
	stop := context.AfterFunc(ctx, func() {
		past := time.Unix(1, 0)
		_ = s.orderWrite.SetWriteDeadline(past)
		_ = s.reportRead.SetReadDeadline(past)
	})
	defer stop()
	_, writeErr := s.orderWrite.Write(s.order)
	_ = s.orderWrite.Close()
	raw, readErr := io.ReadAll(io.LimitReader(s.reportRead, orderBytesMax))
	if ctx.Err() != nil {
		return &StartError{s.name, "start", "no answer in time", context.Cause(ctx)}
	}
	if err := errors.Join(writeErr, readErr); err != nil && len(raw) == 0 {
		return &StartError{s.name, "start", err.Error(), err}
	}
	return s.outcome(raw)
}

// outcome reads the report: the mark alone is success, see shimReady.
func (s *shimCommand) outcome(raw []byte) error {
	if len(raw) > 0 && raw[0] == shimReady {
		raw = raw[1:]
		if len(raw) == 0 {
			return nil
		}
	}
	var report shimReport
	if err := json.Unmarshal(raw, &report); err != nil {
		return &StartError{s.name, "start", "the shim died before exec; is proc.ShimMain called first in main?", nil}
	}
	failed := &StartError{Name: s.name, Step: report.Step, Message: report.Error}
	switch {
	case report.Locked:
		failed.Err = &LockHeldError{s.lockFile, report.Holder}
	case report.Errno != 0:
		failed.Err = report.Errno
	}
	return failed
}
