package gateway

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Nobody has the clients of an address that is reserved, whatever options it brings, and a
// server has the address as soon as it is given up.
func TestReserve(t *testing.T) {
	first, err := net.Listen("tcp", "127.66.250.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := first.Addr().(*net.TCPAddr).AddrPort()
	// A session that ends here leaves the address in TIME_WAIT.
	go func() { c, _ := net.Dial("tcp", address.String()); c.Read(make([]byte, 1)); c.Close() }()
	if c, err := first.Accept(); err == nil {
		c.Close()
	}
	first.Close()
	reserved, err := Reserve(address)
	if err != nil {
		t.Fatal(err)
	}
	for name, options := range map[string][]int{"plain": nil, "reused": {unix.SO_REUSEADDR}, "shared": {unix.SO_REUSEADDR, unix.SO_REUSEPORT}} {
		for _, at := range []string{address.String(), netip.AddrPortFrom(netip.IPv4Unspecified(), address.Port()).String()} {
			config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
				return raw.Control(func(fd uintptr) {
					_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 0)
					for _, o := range options {
						_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, o, 1)
					}
				})
			}}
			if l, err := config.Listen(context.Background(), "tcp4", at); err == nil {
				l.Close()
				t.Errorf("%s: listens at %s", name, at)
			}
		}
	}
	if _, err := net.Dial("tcp", address.String()); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("a client: %v", err)
	}
	if err := reserved.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := net.Listen("tcp", address.String())
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}
