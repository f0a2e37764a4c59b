package harness

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
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

// LoseConnections resets the connections that a server has to another one, whatever either
// does: a frozen one gets nothing more, and what has come already it finds cut off. Root
// alone may.
func (m Member) LoseConnections(to Member) error {
	at, err := to.Listens()
	if err != nil {
		return err
	}
	own := map[string]bool{}
	for _, pid := range m.Service.Processes(m.ID) {
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid)) // the pattern is well formed
		for _, f := range files {
			if name, err := os.Readlink(f); err == nil {
				own[name] = true
			}
		}
	}
	sockets, err := netlink.SocketDiagTCP(unix.AF_INET)
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) { // others came and went meanwhile
		return err
	}
	found := 0
	for _, s := range sockets {
		other, _ := netip.AddrFromSlice(s.ID.Destination)
		if !own[fmt.Sprintf("socket:[%d]", s.INode)] || other.Unmap() != at.Addr() || s.ID.DestinationPort != at.Port() {
			continue
		}
		found++
		local, remote := &net.TCPAddr{IP: s.ID.Source, Port: int(s.ID.SourcePort)}, &net.TCPAddr{IP: s.ID.Destination, Port: int(s.ID.DestinationPort)}
		if err := netlink.SocketDestroy(local, remote); err != nil {
			return fmt.Errorf("reset %s to %s: %w", local, remote, err)
		}
	}
	if found == 0 {
		return fmt.Errorf("%s has no connection to %s", m.ID, at)
	}
	return nil
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
