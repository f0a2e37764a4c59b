//go:build integration

package sockdestroy_test

import (
	"net"
	"os"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"kurabe/internal/sockdestroy"
)

// TestListenerStays destroys a connection, then the same one again, which has ended by then.
func TestListenerStays(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	var plain net.ListenConfig
	plain.SetMultipathTCP(false)
	l, err := plain.Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	all, err := netlink.SocketDiagTCP(unix.AF_INET)
	if err != nil {
		t.Fatal(err)
	}
	var found *netlink.Socket
	for _, s := range all {
		if int(s.ID.SourcePort) == l.Addr().(*net.TCPAddr).Port && int(s.ID.DestinationPort) == client.LocalAddr().(*net.TCPAddr).Port {
			found = s
		}
	}
	if found == nil {
		t.Fatal("the connection is not listed")
	}
	for range 2 {
		if err := sockdestroy.Destroy(found); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := client.Read(make([]byte, 1)); err == nil {
		t.Errorf("read %d bytes of a connection that was destroyed", n)
	}
	again, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		t.Fatal("the listener is gone: ", err)
	}
	again.Close()
}
