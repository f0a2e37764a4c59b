package raw

import (
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// waitMaxMillis bounds a wait. The runtime ends one with a signal when it wants the thread,
// unless it was told to send none (GODEBUG=asyncpreemptoff=1).
const waitMaxMillis = 100

// Wait waits until something happens to what an epoll descriptor watches, a signal comes,
// or 100 ms have passed. It returns how many of events it filled, which may be none.
func Wait(epoll int, events []unix.EpollEvent) (int, error) {
	n, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(epoll), uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)), waitMaxMillis, 0, 0)
	if errno != 0 && errno != unix.EINTR {
		return 0, os.NewSyscallError("epoll_pwait", errno)
	}
	if errno != 0 {
		return 0, nil
	}
	return int(n), nil
}

// SetTimer lets a timerfd ring once, after d, which is more than nothing.
func SetTimer(timer int, d time.Duration) error {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
	_, _, errno := syscall.RawSyscall6(unix.SYS_TIMERFD_SETTIME, uintptr(timer), 0, uintptr(unsafe.Pointer(&spec)), 0, 0, 0)
	if errno != 0 {
		return os.NewSyscallError("timerfd_settime", errno)
	}
	return nil
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
