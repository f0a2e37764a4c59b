//go:build integration

package sklookup_test

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kurabe/internal/sklookup"
)

// endpoint is where clients connect to; servers listen at addresses of their own.
const endpoint = "127.91.0.1"

// listen is a server that answers each client with its name and the address the client
// connected to.
func listen(t *testing.T, name, address string) *net.TCPListener {
	t.Helper()
	var plain net.ListenConfig
	plain.SetMultipathTCP(false)
	l, err := plain.Listen(t.Context(), "tcp4", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, name+" "+c.LocalAddr().String()+" "+c.RemoteAddr().String())
			c.Close()
		}
	}()
	return l.(*net.TCPListener)
}

func addrPort(l net.Listener) netip.AddrPort { return l.Addr().(*net.TCPAddr).AddrPort() }

// want checks who answers at the endpoint: "" for nobody.
func want(t *testing.T, at netip.AddrPort, name string) {
	t.Helper()
	c, err := net.Dial("tcp4", at.String())
	if err != nil {
		if name != "" {
			t.Errorf("nobody answers at %s where %s should: %v", at, name, err)
		}
		return
	}
	defer c.Close()
	got, err := io.ReadAll(c)
	if should := name + " " + at.String() + " " + c.LocalAddr().String(); string(got) != should {
		t.Errorf("%q answers, %v; want %q", got, err, should)
	}
}

func table(t *testing.T, folder string) *sklookup.Table {
	t.Helper()
	table := sklookup.New(folder, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { table.Close() })
	return table
}

// needPins skips the test where nothing can be pinned.
func needPins(t *testing.T) {
	t.Helper()
	if err := sklookup.Pinnable(); err != nil {
		t.Skip(err)
	}
}

// set skips the test where the kernel, or whoever runs it, does not allow it.
func set(t *testing.T, table *sklookup.Table, at netip.AddrPort, server netip.AddrPort, pid int) {
	t.Helper()
	if err := sklookup.Available(); err != nil {
		t.Skip(err)
	}
	if err := table.Set(at, server, pid); err != nil {
		t.Fatal(err)
	}
}

// TestSetLeavesTheSocket: whether a socket blocks is its server's affair, and a copy of
// the descriptor would change it for both.
func TestSetLeavesTheSocket(t *testing.T) {
	for name, mode := range map[string]int{"it blocks": 0, "it does not block": unix.SOCK_NONBLOCK} {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|mode, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		if err := errors.Join(unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 91, 0, 5}}), unix.Listen(fd, 1)); err != nil {
			t.Fatal(err)
		}
		name4, err := unix.Getsockname(fd)
		if err != nil {
			t.Fatal(err)
		}
		own := name4.(*unix.SockaddrInet4)
		server := netip.AddrPortFrom(netip.AddrFrom4(own.Addr), uint16(own.Port))
		set(t, table(t, ""), netip.AddrPortFrom(netip.MustParseAddr(endpoint), server.Port()), server, os.Getpid())
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		if err != nil || (flags&unix.O_NONBLOCK != 0) != (mode != 0) {
			t.Errorf("%s, and then its flags are %#x, %v", name, flags, err)
		}
	}
}

func TestTable(t *testing.T) {
	server := listen(t, "server", "127.91.0.2:0")
	at := netip.AddrPortFrom(netip.MustParseAddr(endpoint), addrPort(server).Port())
	table := table(t, "")
	want(t, at, "")
	set(t, table, at, addrPort(server), os.Getpid())
	want(t, at, "server")
	want(t, addrPort(server), "server")

	gateway := listen(t, "gateway", at.String())
	want(t, at, "server")
	if !table.Has(at) || table.Has(addrPort(server)) {
		t.Error("the table does not say what it leads")
	}
	other := listen(t, "other", "127.91.0.3:"+at.String()[len(endpoint)+1:])
	set(t, table, at, addrPort(other), os.Getpid())
	want(t, at, "other")
	other.Close() // the kernel forgets it
	if table.Has(at) {
		t.Error("a socket that was closed is in the table")
	}
	want(t, at, "gateway")
	set(t, table, at, addrPort(server), os.Getpid())
	for range 2 {
		if err := table.Clear(at); err != nil {
			t.Fatal(err)
		}
	}
	want(t, at, "gateway")
	gateway.Close()
	want(t, at, "")
	set(t, table, at, addrPort(server), os.Getpid())
	if err := table.Close(); err != nil {
		t.Fatal(err)
	}
	want(t, at, "") // nothing is pinned
	if err := table.Set(at, addrPort(server), os.Getpid()); err == nil {
		t.Error("a closed table takes an address")
	}
}

func TestSetRefuses(t *testing.T) {
	server := listen(t, "server", "127.91.0.2:0")
	at := netip.AddrPortFrom(netip.MustParseAddr(endpoint), addrPort(server).Port())
	table := table(t, "")
	set(t, table, at, addrPort(server), os.Getpid())
	idle := exec.Command("sleep", "1h")
	if err := idle.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { idle.Process.Kill(); idle.Wait() }()
	for name, c := range map[string]struct {
		at, server netip.AddrPort
		pid        int
	}{
		"another address":         {at, at, os.Getpid()},
		"a process without it":    {at, addrPort(server), idle.Process.Pid},
		"no process":              {at, addrPort(server), 1 << 30},
		"an endpoint of IPv6":     {netip.MustParseAddrPort("[::1]:5432"), addrPort(server), os.Getpid()},
		"an endpoint with port 0": {netip.AddrPortFrom(at.Addr(), 0), addrPort(server), os.Getpid()},
	} {
		if err := table.Set(c.at, c.server, c.pid); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	want(t, at, "server")
}

// TestPinned: a server keeps its clients' address while no process has the table open,
// and the next process takes the table up.
func TestPinned(t *testing.T) {
	needPins(t)
	folder := sklookup.PinFolder("test-" + rand.Text())
	t.Cleanup(func() { sklookup.Remove(folder) })
	server := listen(t, "server", "127.91.0.2:0")
	at := netip.AddrPortFrom(netip.MustParseAddr(endpoint), addrPort(server).Port())
	first := table(t, folder)
	set(t, first, at, addrPort(server), os.Getpid())
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	want(t, at, "server")
	second := table(t, folder)
	if !second.Has(at) {
		t.Error("the next process does not know what is led")
	}
	if err := second.Clear(at); err != nil {
		t.Fatal(err)
	}
	want(t, at, "")
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("a table that leads nobody is left: %v", err)
	}
}

// TestHalfPinned: what a process that died while it pinned has left, or another version,
// is no hindrance.
func TestHalfPinned(t *testing.T) {
	needPins(t)
	folder := sklookup.PinFolder("test-" + rand.Text())
	t.Cleanup(func() { sklookup.Remove(folder) })
	server := listen(t, "server", "127.91.0.2:0")
	at := netip.AddrPortFrom(netip.MustParseAddr(endpoint), addrPort(server).Port())
	set(t, table(t, folder), at, addrPort(server), os.Getpid())
	found, err := os.ReadDir(folder)
	if err != nil || len(found) != 2 {
		t.Fatalf("%v, %v", found, err)
	}
	if err := os.Remove(folder + "/" + found[0].Name()); err != nil {
		t.Fatal(err)
	}
	next := table(t, folder)
	if next.Has(at) {
		t.Error("the old table was taken up")
	}
	set(t, next, at, addrPort(server), os.Getpid())
	want(t, at, "server")
}

// An established session is no business of the table.
func TestSessionsStay(t *testing.T) {
	var plain net.ListenConfig
	plain.SetMultipathTCP(false)
	server, err := plain.Listen(t.Context(), "tcp4", "127.91.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	at := netip.AddrPortFrom(netip.MustParseAddr(endpoint), addrPort(server).Port())
	table := table(t, "")
	set(t, table, at, addrPort(server), os.Getpid())
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	client, err := new(net.Dialer).DialContext(ctx, "tcp4", at.String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	session, err := server.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if err := table.Clear(at); err != nil {
		t.Fatal(err)
	}
	if err := table.Close(); err != nil {
		t.Fatal(err)
	}
	for _, pair := range [][2]net.Conn{{client, session}, {session, client}} {
		if _, err := io.WriteString(pair[0], "more"); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 4)
		if _, err := io.ReadFull(pair[1], got); err != nil || string(got) != "more" {
			t.Errorf("%q, %v", got, err)
		}
	}
}
