package raw

import (
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// waitMax bounds a wait. The runtime ends one with a signal when it wants the thread,
// unless it was told to send none (GODEBUG=asyncpreemptoff=1).
const waitMax = 100 * time.Millisecond

// Wait waits until something happens to what is asked for, limit or 100 ms have passed, or a
// signal comes. It returns how many of them something happened to, which may be none.
func Wait(polls []unix.PollFd, limit time.Duration) (int, error) {
	most := unix.NsecToTimespec(int64(min(limit, waitMax)))
	n, _, errno := syscall.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(unsafe.SliceData(polls))), uintptr(len(polls)), uintptr(unsafe.Pointer(&most)), 0, 0, 0)
	switch errno {
	case 0:
		return int(n), nil
	case unix.EINTR:
		return 0, nil
	}
	return 0, os.NewSyscallError("ppoll", errno)
}

// Receive reads from a socket that does not block; EAGAIN when there is nothing.
func Receive(socket int, b []byte) (int, error) { return transfer(unix.SYS_RECVFROM, socket, b, 0) }

// Send writes to a socket that does not block; EAGAIN when there is no room.
func Send(socket int, b []byte) (int, error) {
	return transfer(unix.SYS_SENDTO, socket, b, unix.MSG_NOSIGNAL)
}

func transfer(number uintptr, socket int, b []byte, flags uintptr) (int, error) {
	for {
		n, _, errno := syscall.RawSyscall6(number, uintptr(socket), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), flags, 0, 0)
		switch errno {
		case 0:
			return int(n), nil
		case unix.EINTR:
		default:
			return 0, errno
		}
	}
}
