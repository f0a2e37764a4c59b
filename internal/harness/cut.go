package harness

import (
	"encoding/binary"
	"errors"
	"math"
	"sync"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// Cuts are what is lost on a network, in each direction by itself. A program at the end of
// each machine's cable drops frames by the machine that they come from: unlike a rule about
// addresses this holds for those that move, and for what is said to all.
type Cuts struct {
	mu   sync.Mutex             // guards what is in the tables
	into map[*Machine]*ebpf.Map // of frames that go to a machine, by it
	out  map[*Machine]*ebpf.Map // of those that come from it
}

// macBytes is the length of a hardware address; as a key it is filled up to two words.
const (
	macBytes = 6
	keyBytes = 8
	cutsMost = 64 // entries of a table: machines
)

// Cuts begins to look at what the machines say. It needs root, and a kernel of version 6.6.
func (n *Network) Cuts(t testing.TB, machines ...*Machine) *Cuts {
	t.Helper()
	c := &Cuts{into: map[*Machine]*ebpf.Map{}, out: map[*Machine]*ebpf.Map{}}
	for _, m := range machines {
		c.into[m] = c.attach(t, m, ebpf.AttachTCXEgress)
		c.out[m] = c.attach(t, m, ebpf.AttachTCXIngress)
	}
	return c
}

// attach puts the program at the bridge's end of a cable.
func (c *Cuts) attach(t testing.TB, m *Machine, at ebpf.AttachType) *ebpf.Map {
	t.Helper()
	table, err := ebpf.NewMap(&ebpf.MapSpec{Name: "cuts", Type: ebpf.Hash, KeySize: keyBytes, ValueSize: 4, MaxEntries: cutsMost})
	try(t, err)
	t.Cleanup(func() { table.Close() })
	program, err := ebpf.NewProgram(cutProgram(table, at))
	try(t, err)
	t.Cleanup(func() { program.Close() })
	cable, err := netlink.LinkByName(m.outer)
	try(t, err)
	l, err := link.AttachTCX(link.TCXOptions{Interface: cable.Attrs().Index, Program: program, Attach: at})
	if err != nil {
		t.Skipf("this kernel does not let frames be dropped: %v", err)
	}
	t.Cleanup(func() { l.Close() })
	return table
}

// cutProgram drops a frame if a random word is below what the table has for its sender.
func cutProgram(table *ebpf.Map, at ebpf.AttachType) *ebpf.ProgramSpec {
	const (
		key        = -keyBytes // on the stack
		sender     = macBytes  // in a frame, after its receiver
		next, drop = -1, 2     // TCX_NEXT, TCX_DROP
	)
	return &ebpf.ProgramSpec{Name: "cut", Type: ebpf.SchedCLS, AttachType: at, License: "Apache-2.0", Instructions: asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadAbs(sender, asm.Word),
		asm.StoreMem(asm.RFP, key, asm.R0, asm.Word),
		asm.LoadAbs(sender+4, asm.Half),
		asm.StoreMem(asm.RFP, key+4, asm.R0, asm.Word),
		asm.LoadMapPtr(asm.R1, table.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, key),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "pass"),
		asm.LoadMem(asm.R7, asm.R0, 0, asm.Word),
		asm.FnGetPrandomU32.Call(),
		asm.JGT.Reg32(asm.R0, asm.R7, "pass"),
		asm.Mov.Imm(asm.R0, drop),
		asm.Return(),
		asm.Mov.Imm(asm.R0, next).WithSymbol("pass"),
		asm.Return(),
	}}
}

// keyOf is a machine as the program sees it: two words in its own order.
func (c *Cuts) keyOf(t testing.TB, m *Machine) [keyBytes]byte {
	t.Helper()
	mac := m.hardware(t)
	var key [keyBytes]byte
	binary.NativeEndian.PutUint32(key[:], binary.BigEndian.Uint32(mac))
	binary.NativeEndian.PutUint32(key[4:], uint32(binary.BigEndian.Uint16(mac[4:])))
	return key
}

func (m *Machine) hardware(t testing.TB) []byte {
	t.Helper()
	h, err := netlink.NewHandleAt(m.ns)
	try(t, err)
	defer h.Close()
	inner, err := h.LinkByName(innerName)
	try(t, err)
	return inner.Attrs().HardwareAddr
}

// Lose has a part of what one machine says not arrive at another, of 1 nothing at all and
// of 0 everything does. What nobody says to a machine in particular counts too.
func (c *Cuts) Lose(t testing.TB, from, to *Machine, part float64) {
	t.Helper()
	c.set(t, c.into[to], from, part)
}

// Mute has a part of what a machine says not arrive anywhere, the tests included.
func (c *Cuts) Mute(t testing.TB, m *Machine, part float64) {
	t.Helper()
	c.set(t, c.out[m], m, part)
}

func (c *Cuts) set(t testing.TB, table *ebpf.Map, from *Machine, part float64) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	key := c.keyOf(t, from)
	if part == 0 {
		if err := table.Delete(key); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			t.Fatal(err)
		}
		return
	}
	try(t, table.Put(key, uint32(part*math.MaxUint32)))
}

// Inside runs something where the machine is: connections that it begins itself, in this
// goroutine, are the machine's, and stay so.
func (m *Machine) Inside(t testing.TB, do func()) {
	t.Helper()
	inside(t, func() {
		if err := netns.Set(m.ns); err != nil {
			t.Error(err)
			return
		}
		do()
	})
}

// Held are its addresses, as Addresses, and none where they cannot be listed.
func (m *Machine) Held() []string {
	h, err := netlink.NewHandleAt(m.ns)
	if err != nil {
		return nil
	}
	defer h.Close()
	all, err := h.AddrList(nil, netlink.FAMILY_V4)
	if err != nil {
		return nil
	}
	var out []string
	for _, a := range all {
		if ip := a.IP.String(); !a.IP.IsLoopback() && ip != m.Address {
			out = append(out, ip)
		}
	}
	return out
}
