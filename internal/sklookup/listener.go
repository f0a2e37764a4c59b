package sklookup

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// listener is a copy of the descriptor of the socket by which a process listens at an
// address. The copy keeps the socket open, so it must be closed soon. It is no os.File: that
// may change whether the socket blocks, for its server too.
func listener(pid int, at netip.AddrPort) (fd int, err error) {
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return -1, fmt.Errorf("process %d: %w", pid, err)
	}
	defer unix.Close(process)
	folder := "/proc/" + strconv.Itoa(pid) + "/fd"
	numbers, err := descriptors(folder)
	if err != nil {
		return -1, err
	}
	for _, number := range numbers {
		if to, err := os.Readlink(folder + "/" + strconv.Itoa(number)); err != nil || !strings.HasPrefix(to, "socket:") {
			continue
		}
		fd, err := unix.PidfdGetfd(process, number, 0)
		if errors.Is(err, unix.EBADF) {
			continue // closed since
		}
		if err != nil {
			return -1, fmt.Errorf("socket of process %d: %w", pid, err)
		}
		if listensAt(fd, at) {
			return fd, nil
		}
		unix.Close(fd)
	}
	return -1, fmt.Errorf("process %d does not listen at %s", pid, at)
}

// descriptors are those of a process, the oldest first: a server listens before it has
// clients, of which it may have thousands.
func descriptors(folder string) ([]int, error) {
	dir, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var numbers []int
	for _, name := range names {
		if number, err := strconv.Atoi(name); err == nil {
			numbers = append(numbers, number)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
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
