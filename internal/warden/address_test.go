package warden

import (
	"net"
	"net/netip"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// The addresses of the lease go, and no others. The warden is born in the network namespace
// of the thread that starts it.
func TestAddresses(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	b := newBed(t)
	_, pids := b.start(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends, and its network with it
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			t.Error("no network namespace:", err)
			return
		}
		link := &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: "eth0"}}
		if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: link.LinkAttrs, PeerName: "far"}); err != nil {
			t.Error(err)
			return
		}
		theirs, others := netip.MustParseAddr("10.78.0.33"), netip.MustParseAddr("10.78.0.34")
		eth0, err := netlink.LinkByName("eth0")
		for _, address := range []netip.Addr{theirs, others} {
			if err == nil {
				err = netlink.AddrAdd(eth0, &netlink.Addr{IPNet: &net.IPNet{IP: address.AsSlice(), Mask: net.CIDRMask(32, 32)}})
			}
		}
		if err != nil {
			t.Error(err)
			return
		}
		w, err := Ensure(deadline(t), b.config)
		end := Now() + int64(300*time.Millisecond)
		if err == nil {
			err = w.Extend(deadline(t), end, Target{Addresses: []netip.Addr{theirs}})
		}
		if err == nil {
			err = w.Wait(deadline(t))
		}
		if err != nil {
			t.Error(err)
			return
		}
		left, err := netlink.AddrList(nil, netlink.FAMILY_V4)
		if err != nil || len(left) != 1 || left[0].IP.String() != others.String() {
			t.Errorf("addresses left: %v %v", left, err)
		}
		if !dead(pids) {
			t.Error("the server lives")
		}
	}()
	<-done
}
