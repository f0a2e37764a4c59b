package sklookup

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// listener is a copy of the descriptor of the socket by which a process listens at an
// address. The copy keeps the socket open, so it must be closed soon.
func listener(pid int, at netip.AddrPort) (*os.File, error) {
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	defer unix.Close(process)
	folder := "/proc/" + strconv.Itoa(pid) + "/fd"
	open, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	for _, entry := range open {
		if to, err := os.Readlink(folder + "/" + entry.Name()); err != nil || !strings.HasPrefix(to, "socket:") {
			continue
		}
		number, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		fd, err := unix.PidfdGetfd(process, number, 0)
		if errors.Is(err, unix.EBADF) {
			continue // closed since
		}
		if err != nil {
			return nil, fmt.Errorf("socket of process %d: %w", pid, err)
		}
		if listensAt(fd, at) {
			return os.NewFile(uintptr(fd), "listener"), nil
		}
		unix.Close(fd)
	}
	return nil, fmt.Errorf("process %d does not listen at %s", pid, at)
}

func listensAt(fd int, at netip.AddrPort) bool {
	if listens, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN); err != nil || listens == 0 {
		return false
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		return false
	}
	own, ok := name.(*unix.SockaddrInet4)
	return ok && netip.AddrPortFrom(netip.AddrFrom4(own.Addr), uint16(own.Port)) == netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
}
