package ownconn

import (
	"context"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// Mark is the mark of packets (SO_MARK): "kura".
const Mark = 0x6b757261

// Dialer makes connections of the service's own.
func Dialer() *net.Dialer {
	return &net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) {
			// A process that may not set it filters no packets either.
			_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MARK, Mark)
		})
	}}
}

// Dial makes a connection of the service's own.
func Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return Dialer().DialContext(ctx, network, address)
}
