//go:build integration

package sklookup_test

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// joined is a session of a client with a server that hangs: it only accepts.
func joined(t *testing.T, l *net.TCPListener) (client, server *net.TCPConn) {
	t.Helper()
	c, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if server, err = l.AcceptTCP(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return c.(*net.TCPConn), server
}

// giveAway makes a socket that of another user, as those of engines are.
func giveAway(t *testing.T, c *net.TCPConn) {
	t.Helper()
	const nobody = 65534
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var failure error
	if err := errors.Join(raw.Control(func(fd uintptr) { failure = unix.Fchown(int(fd), nobody, -1) }), failure); err != nil {
		t.Fatal(err)
	}
}

// alive demands that a session carries bytes.
func alive(t *testing.T, client, server *net.TCPConn) {
	t.Helper()
	got := make([]byte, 1)
	if _, err := client.Write([]byte("x")); err != nil {
		t.Error(err)
	} else if _, err := io.ReadFull(server, got); err != nil {
		t.Error(err)
	}
}

// TestCut: sessions at the address end although their server hangs; those at another, and
// those of this process's user, go on.
func TestCut(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("ending sessions needs root")
	}
	listen := func(ip string, port uint16) *net.TCPListener {
		l, err := net.ListenTCP("tcp4", net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(ip), port)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l
	}
	at := listen("127.91.0.2", 0)
	other := listen("127.91.0.4", addrPort(at).Port())
	hung, hungServer := joined(t, at)
	giveAway(t, hungServer)
	held, heldServer := joined(t, at)
	apart, apartServer := joined(t, other)
	giveAway(t, apartServer)

	table := table(t, "")
	table.Cut(addrPort(at))
	if err := hung.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := hung.Read(make([]byte, 1)); !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("the session of a server that hangs: %v, want a reset", err)
	}
	if _, err := hungServer.Write([]byte("late")); err == nil {
		t.Error("the server can still answer")
	}
	alive(t, held, heldServer)
	alive(t, apart, apartServer)
}
