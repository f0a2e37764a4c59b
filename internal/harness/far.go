package harness

import (
	"os"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Way is what a far machine's cable does to frames of one direction. The zero Way passes
// them on.
type Way struct {
	Delay  time.Duration
	Jitter time.Duration // up to so much more; a frame can overtake another one
	Twice  float64       // the part that arrives twice
	Lost   float64       // the part that does not arrive
}

// farCable is two TAP devices, one at each end, and what carries frames between them: this
// process, so it needs nothing of the kernel's that delays (netem), and no frame of it is
// seen anywhere else.
type farCable struct {
	inner     *os.File // the machine's end
	into, out *lane
}

// FarMachine is Machine with a cable that can be made longer. Its two ends are closed with
// the test, and whoever carries frames ends with them.
func (n *Network) FarMachine(t testing.TB) *Machine {
	t.Helper()
	m := n.machine(t)
	outer, err := openTAP(m.outer)
	if err != nil {
		t.Skipf("a cable that delays needs TAP devices: %v", err)
	}
	var inner *os.File
	inside(t, func() {
		if err = netns.Set(m.ns); err == nil {
			inner, err = openTAP(innerName)
		}
	})
	if err != nil {
		outer.Close()
		t.Fatal(err)
	}
	m.far = &farCable{inner, newLane(outer, inner), newLane(inner, outer)}
	var lanes sync.WaitGroup
	for _, l := range []*lane{m.far.into, m.far.out} {
		lanes.Go(l.read)
		lanes.Go(l.write)
	}
	t.Cleanup(func() {
		outer.Close()
		inner.Close()
		lanes.Wait()
	})
	link, err := netlink.LinkByName(m.outer)
	try(t, err)
	try(t, netlink.LinkSetMaster(link, n.bridge))
	m.setUp(t, link)
	return m
}

// Stretch changes a far machine's cable, each direction by itself. What is under way already
// arrives as it would have.
func (m *Machine) Stretch(into, out Way) {
	m.far.into.set(into)
	m.far.out.set(out)
}

// openTAP makes a device in the namespace of this thread. It is gone when it is closed.
func openTAP(name string) (*os.File, error) {
	const path = "/dev/net/tun"
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	request, err := unix.NewIfreq(name)
	if err == nil {
		request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("TUNSETIFF", err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

// plug has the machine see its cable as it is: a pair of kernel devices does that by itself.
func (c *farCable) plug(in bool) error {
	raw, err := c.inner.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	value := map[bool]int{true: 1}[in]
	if err := raw.Control(func(fd uintptr) { failed = unix.IoctlSetPointerInt(int(fd), unix.TUNSETCARRIER, value) }); err != nil {
		return err
	}
	return failed
}
