//go:build integration

package packetfilter

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"kurabe"
	"kurabe/internal/ownconn"
)

// inNetwork runs a test in a network namespace of its own, which has the loopback interface.
func inNetwork(t *testing.T, test func()) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // the thread ends with the goroutine, and the namespace with the thread
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			t.Error("no network namespace:", err)
			return
		}
		lo, err := netlink.LinkByName("lo")
		try(t, err)
		try(t, netlink.LinkSetUp(lo))
		test()
	}()
	<-done
}

// try ends the goroutine: see inNetwork.
func try(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
		runtime.Goexit()
	}
}

const endpoint = "127.66.0.1:5432"

// serve echoes at the endpoint.
func serve(t *testing.T) {
	l, err := net.Listen("tcp4", endpoint)
	try(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c) }()
		}
	}()
}

// dial connects from an address, nil where that is not possible within some time.
func dial(t *testing.T, from string, d *net.Dialer) net.Conn {
	d.LocalAddr, d.Timeout = &net.TCPAddr{IP: net.ParseIP(from)}, time.Second
	c, err := d.Dial("tcp4", endpoint)
	if err != nil {
		return nil
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// answers says whether an echo comes back.
func answers(c net.Conn) error {
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := c.Write([]byte("x")); err != nil {
		return err
	}
	_, err := io.ReadFull(c, make([]byte, 1))
	return err
}

// process is a client in a process of its own: connections of this one are the service's to Table.
type process struct{ out *bufio.Reader }

// client starts one, in this namespace, and returns when it is connected.
func client(t *testing.T, from string) process {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestClient$")
	cmd.Env = append(os.Environ(), "KURABE_TEST_CLIENT="+from)
	pipe, err := cmd.StdoutPipe()
	try(t, err)
	try(t, cmd.Start())
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	c := process{bufio.NewReader(pipe)}
	if line, err := c.out.ReadString('\n'); line != "connected\n" {
		t.Errorf("client at %s: %q, %v", from, line, err)
		runtime.Goexit()
	}
	return c
}

// ended waits until the client's connection was reset.
func (c process) ended(t *testing.T) {
	t.Helper()
	if line, err := c.out.ReadString('\n'); line != "reset\n" {
		t.Errorf("%q, %v; want a reset", line, err)
	}
}

// TestClient is the process of client.
func TestClient(t *testing.T) {
	from := os.Getenv("KURABE_TEST_CLIENT")
	if from == "" {
		t.Skip("it is no client")
	}
	c := dial(t, from, &net.Dialer{})
	if c == nil || answers(c) != nil {
		return
	}
	fmt.Println("connected")
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	_, err := c.Read(make([]byte, 1))
	if errors.Is(err, syscall.ECONNRESET) {
		fmt.Println("reset")
		return
	}
	fmt.Println(err)
}

func permit(t *testing.T, sources ...string) Server {
	s, err := ServerOf(kurabe.Assignment{Instance: "db-A", Goal: kurabe.GoalRunning, Address: "127.66.0.1", Port: 5432,
		Filter: &kurabe.PacketFilter{Sources: sources, AnyDestination: true}}, 0)
	try(t, err)
	return s
}

func tables(t *testing.T) (names []string) {
	conn, err := nftables.New()
	try(t, err)
	all, err := conn.ListTables()
	try(t, err)
	for _, one := range all {
		names = append(names, one.Name)
	}
	return names
}

// TestKernel permits and revokes networks under living connections, with a table of the host's
// owner beside.
func TestKernel(t *testing.T) {
	inNetwork(t, func() {
		try(t, Probe())
		users, err := nftables.New()
		try(t, err)
		users.AddTable(&nftables.Table{Name: "filter", Family: nftables.TableFamilyINet})
		try(t, users.Flush())
		serve(t)
		filter := New("h1", slog.New(slog.DiscardHandler))
		try(t, filter.Load(nil))
		before := client(t, "127.0.0.1")

		try(t, filter.Put(permit(t, "127.0.0.2/32", "127.0.0.4/30")))
		before.ended(t)
		other := client(t, "127.0.0.2")
		own := dial(t, "127.0.0.1", ownconn.Dialer())
		if own == nil || dial(t, "127.0.0.5", &net.Dialer{}) == nil {
			t.Error("a permitted client, or the service itself, is refused")
			return
		}
		for _, from := range []string{"127.0.0.1", "127.0.0.3", "127.0.0.8"} {
			if dial(t, from, &net.Dialer{}) != nil {
				t.Errorf("a client at %s is let in", from)
			}
		}

		// A process that begins anew finds what the one before has left, and changes it.
		if dial(t, "127.0.0.1", &net.Dialer{}) != nil {
			t.Error("refused no more")
		}
		again := New("h1", slog.New(slog.DiscardHandler))
		try(t, again.Load([]Server{permit(t, "127.0.0.1/32")}))
		other.ended(t)
		try(t, answers(own))
		if dial(t, "127.0.0.1", &net.Dialer{}) == nil || dial(t, "127.0.0.2", &net.Dialer{}) != nil {
			t.Error("the rules that were loaded are not in force")
		}
		if got := tables(t); len(got) != 2 {
			t.Errorf("tables %q", got)
		}
		try(t, again.Drop("db-A"))
		if got := tables(t); len(got) != 1 || got[0] != "filter" {
			t.Errorf("tables %q are left", got)
		}
		if dial(t, "127.0.0.2", &net.Dialer{}) == nil {
			t.Error("refused without any rule")
		}
	})
}

// TestManyServers writes as much as a full host has.
func TestManyServers(t *testing.T) {
	inNetwork(t, func() {
		var all []Server
		for n := range 60 {
			at := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 66, 0, byte(n + 1)}), 5432)
			s := Server{ID: at.String(), Addresses: []netip.AddrPort{at}, Account: 70000 + n, Filter: &Rules{}}
			for i := range 5 * 60 {
				p := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i), byte(n), 0}), 24)
				s.Filter.Sources = append(s.Filter.Sources, p)
				s.Filter.Destinations = append(s.Filter.Destinations, Destination{p, "tcp", 1, 443})
			}
			all = append(all, s)
		}
		filter := New("h1", slog.New(slog.DiscardHandler))
		began := time.Now()
		try(t, filter.Load(all))
		t.Logf("%d servers with %d networks each way: %s", len(all), 5*60, time.Since(began))
		try(t, filter.Load(nil))
	})
}
