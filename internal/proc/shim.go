package proc

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Descriptors that the shim is born with, after the standard three.
const (
	shimOrderFD  = 3
	shimReportFD = 4
)

// orderBytesMax bounds the order; argv and environment are limited by the kernel
// to less.
const orderBytesMax = 1 << 20

// shimReady is written just before exec. Without it an end of the report means
// that the shim was killed, not that it became the engine.
const shimReady = '+'

// shimReport is how a failed start reaches the parent.
type shimReport struct {
	Step   string        `json:"step"`
	Error  string        `json:"error"`
	Errno  syscall.Errno `json:"errno,omitempty"`
	Locked bool          `json:"locked,omitempty"`
	Holder int           `json:"holder,omitempty"`
}

// IsShim says if this process was started as a shim.
func IsShim() bool { return len(os.Args) > 1 && os.Args[1] == "shim" }

// ShimMain turns this process into the one it was ordered to be. It never
// returns. Call it before anything else in main.
func ShimMain() {
	// Mount namespace and exec belong to one thread.
	runtime.LockOSThread()
	step, err := becomeOrdered()
	report := shimReport{Step: step, Error: err.Error()}
	_ = errors.As(err, &report.Errno)
	var held *LockHeldError
	if errors.As(err, &held) {
		report.Locked, report.Holder = true, held.PID
	}
	raw, _ := json.Marshal(report)
	if _, err := unix.Write(shimReportFD, raw); err != nil {
		fmt.Fprintf(os.Stderr, "shim: %s: %s\n", report.Step, report.Error)
	}
	os.Exit(127)
}

// becomeOrdered does each step as root that needs root, then drops privileges. It
// returns only on failure, with the name of the step.
func becomeOrdered() (step string, err error) {
	unix.CloseOnExec(shimReportFD)
	unix.Umask(0o022)
	// Where we were started in the background or by nohup, these are ignored, and
	// that would last through exec. A handler is reset by exec to the default.
	signal.Notify(make(chan os.Signal, 1), unix.SIGHUP, unix.SIGINT)

	spec, err := readOrder()
	if err != nil {
		return "read order", err
	}
	lock := -1
	if spec.LockFile != "" {
		if lock, err = takeLock(spec.LockFile); err != nil {
			return "lock", err
		}
	}
	if err := joinCgroups(spec.Cgroups); err != nil {
		return "join cgroup", err
	}
	if err := applyLimits(spec.Spec); err != nil {
		return "set limits", err
	}
	if !spec.KeepStdio {
		if err := openLog(spec.Spec); err != nil {
			return "open log", err
		}
	}
	if spec.BindAs != "" {
		if err := enterView(spec.BindFrom, spec.BindAs); err != nil {
			return "bind data folder", err
		}
	}
	if err := closeOnExecFrom(unix.Stderr + 1); err != nil {
		return "close descriptors", err
	}
	if lock >= 0 {
		if _, err := unix.FcntlInt(uintptr(lock), unix.F_SETFD, 0); err != nil {
			return "keep lock", err
		}
	}
	// Last of what needs root: from here on a successor of ours can adopt us.
	if spec.RecordFile != "" {
		if err := writeRecord(spec.Spec); err != nil {
			return "write record", err
		}
	}
	switch {
	case spec.Seclude != nil:
		if err := enterSeclusion(spec.Spec); err != nil {
			return "seclude", err
		}
	case spec.ShowUser:
		if err := showUser(spec.User); err != nil {
			return "show user", err
		}
	}
	return execAs(spec.Spec)
}

// execAs drops privileges first, so that a folder or program which the user
// cannot reach is our clear error and not a riddle in the engine's log.
func execAs(spec Spec) (step string, err error) {
	if err := become(spec.User); err != nil {
		return "drop privileges", err
	}
	if err := os.Chdir(viewPath(spec)); err != nil {
		return "enter data folder", err
	}
	unix.Umask(spec.Umask)
	if now := Boottime(); spec.NotAfter != 0 && now >= spec.NotAfter {
		return "start in time", notAfter{spec.NotAfter, now}
	}
	// If the service died meanwhile this fails, and we give up: its successor may
	// have looked before we took the lock, and seen nothing. An engine never
	// appears behind its back.
	if _, err := unix.Write(shimReportFD, []byte{shimReady}); err != nil {
		return "report", fmt.Errorf("the service that started this shim has ended: %w", err)
	}
	return "exec", &os.PathError{Op: "exec", Path: spec.Argv[0], Err: syscall.Exec(spec.Argv[0], spec.Argv, spec.Env)}
}

func readOrder() (order, error) {
	var spec order
	file := os.NewFile(shimOrderFD, "order")
	if file == nil {
		return spec, errors.New("the shim is started by the service only")
	}
	defer file.Close()
	raw, err := io.ReadAll(io.LimitReader(file, orderBytesMax))
	if err != nil {
		return spec, err
	}
	if err := json.Unmarshal(raw, &spec); err != nil {
		return spec, fmt.Errorf("parse order: %w", err)
	}
	return spec, spec.check()
}
