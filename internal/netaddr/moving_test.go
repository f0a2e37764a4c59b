package netaddr

import (
	"bytes"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// inNetwork runs a test in a network namespace of its own with a cable: eth0 has
// 10.78.0.2/24, and far is its other end.
func inNetwork(t *testing.T, test func(t *testing.T)) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		// The thread ends with the goroutine, and the namespace with the thread.
		runtime.LockOSThread()
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			t.Error("no network namespace:", err)
			return
		}
		try(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "eth0"}, PeerName: "far"}))
		for _, name := range []string{"lo", "eth0", "far"} {
			link, err := netlink.LinkByName(name)
			try(t, err)
			if name == "eth0" {
				try(t, netlink.AddrAdd(link, &netlink.Addr{IPNet: &net.IPNet{IP: net.IPv4(10, 78, 0, 2).To4(), Mask: net.CIDRMask(24, 32)}}))
			}
			try(t, netlink.LinkSetUp(link))
		}
		test(t)
	}()
	<-done
}

// try ends the goroutine and not only the test: see inNetwork.
func try(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
		runtime.Goexit()
	}
}

var (
	pool    = netip.MustParsePrefix("10.78.0.32/27")
	inPool  = netip.MustParseAddr("10.78.0.33")
	outside = netip.MustParseAddr("10.78.0.99")
	own     = netip.MustParseAddr("10.78.0.2")
)

func has(t *testing.T, address netip.Addr) bool {
	t.Helper()
	held, err := holders(address)
	try(t, err)
	return len(held) > 0
}

func TestMoving(t *testing.T) {
	inNetwork(t, func(t *testing.T) {
		p, err := Open(pool)
		try(t, err)
		try(t, p.Hold(inPool))
		try(t, p.HoldMoving(outside))
		try(t, p.HoldMoving(outside))
		again, err := Open(pool) // as the next agent
		try(t, err)
		moving, err := again.Moving()
		try(t, err)
		held, err := again.Held()
		try(t, err)
		if !slices.Equal(moving, []netip.Addr{outside}) || !slices.Equal(held, []netip.Addr{inPool}) {
			t.Errorf("moving %v, held %v", moving, held)
		}
		for _, address := range []netip.Addr{own, netip.MustParseAddr("10.79.0.1"), netip.MustParseAddr("fd00::1")} {
			if err := p.HoldMoving(address); err == nil {
				t.Errorf("%s was held", address)
			}
		}
		try(t, again.DropMoving(inPool)) // bears no mark
		try(t, again.DropMoving(outside))
		try(t, again.DropMoving(outside))
		if has(t, outside) || !has(t, inPool) || !has(t, own) {
			t.Error("dropped the wrong one")
		}
	})
}

func TestDrop(t *testing.T) {
	inNetwork(t, func(t *testing.T) {
		p, err := Open(pool)
		try(t, err)
		try(t, p.Hold(inPool))
		try(t, p.HoldMoving(outside))
		for _, address := range []netip.Addr{inPool, outside, outside, own, netip.MustParseAddr("fd00::1"), netip.MustParseAddr("127.0.0.1")} {
			try(t, Drop(address))
		}
		if has(t, inPool) || has(t, outside) || !has(t, own) || !has(t, netip.MustParseAddr("127.0.0.1")) {
			t.Error("dropped the wrong ones")
		}
	})
}

func TestLongInterfaceName(t *testing.T) {
	for name, want := range map[string]string{"eth0": "eth0:kurabe", "enp0s31f6": "enp0s31f6:kurab", "abcdefghijklm": "abcdefghijklm:k", "abcdefghijklmn": ""} {
		p := &Pool{link: &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: name}}}
		if got, err := p.label(); got != want || (err != nil) != (want == "") {
			t.Errorf("label on %s: %q %v", name, got, err)
		}
	}
}

func TestAnnounce(t *testing.T) {
	inNetwork(t, func(t *testing.T) {
		p, err := Open(pool)
		try(t, err)
		if err := Announce(outside); err == nil {
			t.Error("announced what it does not have")
		}
		if err := Announce(netip.MustParseAddr("fd00::1")); err == nil {
			t.Error("announced IPv6")
		}
		try(t, Announce(netip.MustParseAddr("127.66.0.7")))
		try(t, p.HoldMoving(outside))
		far, err := netlink.LinkByName("far")
		try(t, err)
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, int(bigEndian(unix.ETH_P_ARP)))
		try(t, err)
		defer unix.Close(fd)
		try(t, unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: bigEndian(unix.ETH_P_ARP), Ifindex: far.Attrs().Index}))
		patience := unix.NsecToTimeval(int64(5 * time.Second))
		try(t, unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &patience))
		try(t, Announce(outside))
		for _, operation := range []uint16{arpRequest, arpReply} {
			buf := make([]byte, 64)
			n, _, err := unix.Recvfrom(fd, buf, 0)
			try(t, err)
			if want := arp(operation, p.link.Attrs().HardwareAddr, outside); !bytes.Equal(buf[:n], want) {
				t.Errorf("heard %x, want %x", buf[:n], want)
			}
		}
	})
}
