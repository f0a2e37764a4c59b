package harness

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
)

// KillServers kills the first process of each, all at once: they are looked up before.
func KillServers(members ...Member) error {
	var pids []int
	for _, m := range members {
		pid, err := m.Server()
		if err != nil {
			return err
		}
		pids = append(pids, pid)
	}
	var errs []error
	for _, pid := range pids {
		errs = append(errs, syscall.Kill(pid, syscall.SIGKILL))
	}
	return errors.Join(errs...)
}

// freezeTime bounds a freeze: a process that waits for the disk stops only after that.
const freezeTime = 5 * time.Second

// Freeze stops every process of the server, as a machine that hangs does. The first one
// makes the others, so it is stopped before them.
func (m Member) Freeze() error {
	first, err := m.Server()
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(freezeTime); time.Now().Before(deadline); {
		moving := 0
		for _, pid := range append([]int{first}, m.Service.Processes(m.ID)...) {
			if Stopped(pid) {
				continue
			}
			moving++
			if err := send(pid, syscall.SIGSTOP); err != nil {
				return fmt.Errorf("freeze %s: %w", m.ID, err)
			}
			if pid == first {
				break
			}
		}
		if moving == 0 {
			return nil
		}
	}
	return fmt.Errorf("%s does not freeze within %v", m.ID, freezeTime)
}

// Thaw has every process of the server go on that is still there.
func (m Member) Thaw() error { return m.signalAll(syscall.SIGCONT) }

// EndReceiver has a frozen PostgreSQL that follows end the session by which it does so, when it
// goes on, before it reads what the network has brought meanwhile.
func (m Member) EndReceiver() error {
	for _, pid := range m.Service.Processes(m.ID) {
		title, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && strings.Contains(string(title), "walreceiver") {
			return send(pid, syscall.SIGTERM)
		}
	}
	return fmt.Errorf("%s has no process that follows", m.ID)
}

// LoseData removes the data folder below a server and kills what worked in it, as if its
// disk had gone. It must be frozen: else it would write into what is removed.
func (m Member) LoseData() error {
	pids := m.Service.Processes(m.ID)
	if slices.ContainsFunc(pids, func(pid int) bool { return !Stopped(pid) }) {
		return fmt.Errorf("%s is not frozen", m.ID)
	}
	// Moved first: a folder that is removed in part is another fault.
	gone := m.DataDir() + ".lost"
	if err := os.Rename(m.DataDir(), gone); err != nil {
		return err
	}
	errs := []error{os.RemoveAll(gone)}
	for _, pid := range pids {
		errs = append(errs, send(pid, syscall.SIGKILL))
	}
	return errors.Join(errs...)
}

func (m Member) signalAll(s syscall.Signal) error {
	var errs []error
	for _, pid := range m.Service.Processes(m.ID) {
		errs = append(errs, send(pid, s))
	}
	return errors.Join(errs...)
}

// send does not mind a process that is gone.
func send(pid int, s syscall.Signal) error {
	if err := syscall.Kill(pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("%v to process %d: %w", s, pid, err)
	}
	return nil
}

// Stopped says whether a process does nothing any more: it is stopped, or gone.
func Stopped(pid int) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
	return len(fields) == 0 || slices.Contains([]string{"T", "Z", "X"}, fields[0])
}
