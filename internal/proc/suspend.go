package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"
)

// Bounds of Suspend: a process that waits for the disk stops only after that.
const (
	suspendTime  = 5 * time.Second
	suspendPause = time.Millisecond
)

// Self is this process, as another one can Adopt it.
func Self() (Process, error) {
	st, err := readStat("self")
	if err != nil {
		return Process{}, err
	}
	return Process{PID: st.pid, StartTime: st.startTime}, nil
}

// Adopt finds a process of this boot by its pid and start time, as Find does by a record.
func Adopt(pid int, startTime uint64) (Process, bool, error) {
	return openRecord(record{PID: pid, StartTime: startTime})
}

// BootID names this boot of the machine: within it, pid and start time name a process.
func BootID() (string, error) { return bootID() }

// Suspend stops (SIGSTOP) a server and every process that works in its data folder, as a
// machine that hangs does. The server makes the others, so it is stopped before them. After
// an error some may have stopped: call Resume in any case.
func Suspend(ctx context.Context, server Process, dataDir string) error {
	ctx, cancel := context.WithTimeout(ctx, suspendTime)
	defer cancel()
	if err := server.Signal(syscall.SIGSTOP); err != nil {
		return fmt.Errorf("suspend process %d: %w", server.PID, err)
	}
	for {
		moving, err := stopRest(server.PID, dataDir)
		if err != nil {
			return fmt.Errorf("suspend processes in %s: %w", dataDir, err)
		}
		if !moving {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("processes in %s do not stop: %w", dataDir, context.Cause(ctx))
		case <-time.After(suspendPause):
		}
	}
}

// stopRest says whether any process still moves: the server, of which nothing more is
// asked, or one of the others, which are told once it does not.
func stopRest(server int, dataDir string) (moving bool, err error) {
	if !suspended(server) {
		return true, nil
	}
	found, err := Survivors(dataDir)
	if err != nil {
		return false, err
	}
	found = slices.DeleteFunc(found, suspended)
	return len(found) > 0, signalWorkers(found, dataDir, syscall.SIGSTOP)
}

// suspended says whether a process does nothing any more: it is stopped, or gone.
func suspended(pid int) bool {
	st, err := readStat(fmt.Sprint(pid))
	return err != nil || st.state == 'T' || st.zombie()
}

// Resume has every process go on (SIGCONT) that works in a data folder. It does not mind
// those that were never stopped.
func Resume(dataDir string) error {
	found, err := Survivors(dataDir)
	if err != nil {
		return err
	}
	return signalWorkers(found, dataDir, syscall.SIGCONT)
}

// signalWorkers signals processes that work in a data folder, and none that does not.
func signalWorkers(found []int, dataDir string, sig syscall.Signal) error {
	dir, err := statDir(dataDir)
	if err != nil {
		return err
	}
	var errs []error
	for _, pid := range found {
		h, err := openHandle(pid)
		// Now that the pidfd is ours: the pid may have been reused.
		if err == nil && worksIn(pid, dir.Dev, dir.Ino) {
			err = h.signal(sig)
		}
		if err != nil && !errors.Is(err, os.ErrProcessDone) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
