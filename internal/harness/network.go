package harness

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// Network is machines in miniature: each is a network namespace with an address of
// 10.77.0.0/24 at one bridge, which is in the namespace that the tests run in. They share
// disk, processes and clock.
type Network struct {
	bridge *netlink.Bridge
	count  int
}

// Machine is one of them.
type Machine struct {
	Address string // its own, "10.77.0.2"
	Pool    string // a network for endpoints, which no other machine has
	outer   string // the end of its cable at the bridge
	ns      netns.NsHandle
	far     *farCable // nil: a cable that only the kernel knows
}

// Here is the tests' own address on the network.
const (
	Here           = "10.77.0.1"
	gatewayAddress = Here + "/24"
)

// NewNetwork makes a network; it needs the namespace that Isolated makes as root.
func NewNetwork(t testing.TB) *Network {
	t.Helper()
	if !Apart() {
		t.Skip("machines in miniature need network namespaces, which only root makes")
	}
	n := &Network{bridge: &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "kurabe0"}}}
	try(t, netlink.LinkAdd(n.bridge))
	t.Cleanup(func() { netlink.LinkDel(n.bridge) })
	address, err := netlink.ParseAddr(gatewayAddress)
	try(t, err)
	try(t, netlink.AddrAdd(n.bridge, address))
	try(t, netlink.LinkSetUp(n.bridge))
	return n
}

func try(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// innerName is the machine's own end of its cable.
const innerName = "eth0"

// Machine adds a machine.
func (n *Network) Machine(t testing.TB) *Machine {
	t.Helper()
	m := n.machine(t)
	try(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: m.outer, MasterIndex: n.bridge.Index}, PeerName: innerName, PeerNamespace: netlink.NsFd(m.ns)}))
	outer, err := netlink.LinkByName(m.outer)
	try(t, err)
	t.Cleanup(func() { netlink.LinkDel(outer) })
	m.setUp(t, outer)
	return m
}

// machine is one without a cable.
func (n *Network) machine(t testing.TB) *Machine {
	t.Helper()
	n.count++
	m := &Machine{Address: fmt.Sprintf("10.77.0.%d", n.count+1), Pool: fmt.Sprintf("10.77.0.%d/27", 32*n.count), outer: fmt.Sprintf("kurabe-%d", n.count)}
	var err error
	inside(t, func() { m.ns, err = netns.New() })
	try(t, err)
	t.Cleanup(func() { m.ns.Close() })
	return m
}

// setUp has both ends of a cable up, and the machine's with its address.
func (m *Machine) setUp(t testing.TB, outer netlink.Link) {
	t.Helper()
	try(t, netlink.LinkSetUp(outer))
	h, err := netlink.NewHandleAt(m.ns)
	try(t, err)
	defer h.Close()
	for _, name := range []string{"lo", innerName} {
		link, err := h.LinkByName(name)
		try(t, err)
		if name == innerName {
			try(t, h.AddrAdd(link, &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP(m.Address), Mask: net.CIDRMask(24, 32)}}))
		}
		try(t, h.LinkSetUp(link))
	}
}

// inside runs what changes its thread's namespace, and puts the thread back.
func inside(t testing.TB, do func()) {
	t.Helper()
	runtime.LockOSThread()
	own, err := netns.Get()
	try(t, err)
	defer own.Close()
	do()
	// A thread that cannot go back ends with its goroutine, since it stays locked.
	try(t, netns.Set(own))
	runtime.UnlockOSThread()
}

// Start starts a command on the machine.
func (m *Machine) Start(t testing.TB, cmd *exec.Cmd) (err error) {
	t.Helper()
	inside(t, func() {
		if err = netns.Set(m.ns); err == nil {
			err = cmd.Start() // a child begins where the thread is
		}
	})
	return err
}

// Namespace is how /proc/PID/ns/net names the machine, of each process on it.
func (m *Machine) Namespace() (string, error) {
	return os.Readlink(fmt.Sprintf("/proc/self/fd/%d", int(m.ns)))
}

// Plug connects the machine's cable, or pulls it.
func (m *Machine) Plug(t testing.TB, in bool) {
	t.Helper()
	link, err := netlink.LinkByName(m.outer)
	try(t, err)
	if in {
		try(t, netlink.LinkSetUp(link))
	} else {
		try(t, netlink.LinkSetDown(link))
	}
	if m.far != nil {
		try(t, m.far.plug(in))
	}
}

// Addresses are those that the machine has beside its own.
func (m *Machine) Addresses(t testing.TB) []string {
	t.Helper()
	h, err := netlink.NewHandleAt(m.ns)
	try(t, err)
	defer h.Close()
	all, err := h.AddrList(nil, netlink.FAMILY_V4)
	try(t, err)
	var out []string
	for _, a := range all {
		if ip := a.IP.String(); strings.HasPrefix(ip, "10.") && ip != m.Address {
			out = append(out, ip)
		}
	}
	return out
}

// Forget takes all those addresses away, as a machine does that is switched off.
func (m *Machine) Forget(t testing.TB) {
	t.Helper()
	h, err := netlink.NewHandleAt(m.ns)
	try(t, err)
	defer h.Close()
	all, err := h.AddrList(nil, netlink.FAMILY_V4)
	try(t, err)
	for _, a := range all {
		if ip := a.IP.String(); strings.HasPrefix(ip, "10.") && ip != m.Address {
			link, err := h.LinkByIndex(a.LinkIndex)
			try(t, err)
			try(t, h.AddrDel(link, &a))
		}
	}
}
