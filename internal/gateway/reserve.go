package gateway

import (
	"fmt"
	"io"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// Reserve takes an address with a socket that is bound and does not listen: clients are refused
// at once, and nobody else of the machine can take it to have their first packets. Closing it
// lets a server have the address.
func Reserve(address netip.AddrPort) (io.Closer, error) {
	family, to := unix.AF_INET6, unix.Sockaddr(&unix.SockaddrInet6{Port: int(address.Port()), Addr: address.Addr().As16()})
	if address.Addr().Is4() {
		family, to = unix.AF_INET, &unix.SockaddrInet4{Port: int(address.Port()), Addr: address.Addr().As4()}
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("reserve %s: %w", address, err)
	}
	file := os.NewFile(uintptr(fd), "reserved "+address.String())
	// With the option, sessions that ended a moment ago do not bar the address. It must not
	// stay: another socket with it could then have the address too.
	err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	if err == nil {
		err = unix.Bind(fd, to)
	}
	if err == nil {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 0)
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("reserve %s: %w", address, err)
	}
	return file, nil
}
