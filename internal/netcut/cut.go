package netcut

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Process is one whose connections to Peers are to be lost.
type Process struct {
	// PID is that of the process as this one sees it; what its children connect to is lost too.
	PID int
	// Workers are further processes that may have such connections already.
	Workers []int
	Peers   []netip.Addr // IPv4
}

// Cut is one under way.
type Cut struct {
	maps  maps
	links []link.Link
}

// Start begins a cut between processes, which ends by itself after a time, or with this
// process, or by Close.
func Start(processes []Process, lasts time.Duration) (c *Cut, failure error) {
	top, err := top()
	if err != nil {
		return nil, err
	}
	types, err := readLayout()
	if err != nil {
		return nil, err
	}
	maps, err := newMaps()
	if err != nil {
		return nil, fmt.Errorf("make the tables of a cut: %w", err)
	}
	c = &Cut{maps: maps}
	defer func() {
		if failure != nil {
			c.Close()
		}
	}()
	end, err := monotonic(lasts) // the kernel's types were read before, which takes a while
	if err != nil {
		return nil, err
	}
	specs := maps.programs(end, types)
	// Sockets are noted before packets are lost, and from then on.
	if err := c.attach(top, specs[0]); err != nil {
		return nil, err
	}
	for _, p := range processes {
		if err := c.Add(p); err != nil {
			return nil, err
		}
	}
	for _, spec := range specs[1:] {
		if err := c.attach(top, spec); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Probe says why this machine cannot cut, nil where it can.
func Probe() error {
	c, err := Start(nil, 0)
	if err == nil {
		c.Close()
	}
	return err
}

// attach makes a link, which ends with its descriptor: a program that is attached without one
// (before Linux 5.7) would stay for good.
func (c *Cut) attach(top string, spec *ebpf.ProgramSpec) error {
	program, err := ebpf.NewProgram(spec)
	if err != nil {
		return fmt.Errorf("load the program %s: %w", spec.Name, err)
	}
	defer program.Close() // the link holds it
	group, err := os.Open(top)
	if err != nil {
		return err
	}
	defer group.Close()
	attached, err := link.AttachRawLink(link.RawLinkOptions{Target: int(group.Fd()), Program: program, Attach: spec.AttachType})
	if err != nil {
		return fmt.Errorf("attach the program %s to %s: %w", spec.Name, top, err)
	}
	c.links = append(c.links, attached)
	return nil
}

// Add has the connections of a process lost too, those that it has as well as new ones.
func (c *Cut) Add(p Process) error {
	if err := within(p.PID); err != nil {
		return err
	}
	for _, peer := range p.Peers {
		if !peer.Unmap().Is4() {
			return fmt.Errorf("cut to %s: only IPv4 is supported", peer)
		}
		if err := c.maps.ends.Put(keyOf(p.PID, peer), uint32(1)); err != nil {
			return fmt.Errorf("cut process %d from %s: %w", p.PID, peer, err)
		}
	}
	sockets, err := netlink.SocketDiagTCP(unix.AF_INET)
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) { // others came and went meanwhile
		return fmt.Errorf("list sockets: %w", err)
	}
	have := map[uint32]bool{}
	for _, pid := range append([]int{p.PID}, p.Workers...) {
		inodes(pid, have)
	}
	for _, s := range sockets {
		if !have[s.INode] || !leadsTo(s, p.Peers) {
			continue
		}
		cookie := uint64(s.ID.Cookie[0]) | uint64(s.ID.Cookie[1])<<32
		if err := c.maps.sockets.Put(cookie, uint32(1)); err != nil {
			return fmt.Errorf("cut a connection of process %d: %w", p.PID, err)
		}
	}
	return nil
}

func leadsTo(s *netlink.Socket, peers []netip.Addr) bool {
	to, ok := netip.AddrFromSlice(s.ID.Destination)
	for _, peer := range peers {
		if ok && to.Unmap() == peer.Unmap() {
			return true
		}
	}
	return false
}

// inodes adds those of the sockets that a process has open; of one that has ended, none.
func inodes(pid int, have map[uint32]bool) {
	folder := "/proc/" + strconv.Itoa(pid) + "/fd"
	entries, _ := os.ReadDir(folder)
	for _, e := range entries {
		to, err := os.Readlink(filepath.Join(folder, e.Name()))
		number, isSocket := strings.CutPrefix(to, "socket:[")
		if inode, wrong := strconv.ParseUint(strings.TrimSuffix(number, "]"), 10, 32); err == nil && isSocket && wrong == nil {
			have[uint32(inode)] = true
		}
	}
}

// Lost is how many packets were lost so far.
func (c *Cut) Lost() (uint64, error) {
	var lost uint64
	err := c.maps.lost.Lookup(uint32(0), &lost)
	return lost, err
}

// Close ends the cut. What waits to be sent again goes through when its sender next tries.
func (c *Cut) Close() error {
	var errs []error
	for _, l := range c.links {
		errs = append(errs, l.Close())
	}
	c.links = nil
	return errors.Join(append(errs, c.maps.close())...)
}

func keyOf(pid int, peer netip.Addr) (key [8]byte) {
	ip := peer.Unmap().As4()
	binary.NativeEndian.PutUint32(key[:4], uint32(pid))
	copy(key[4:], ip[:])
	return key
}

// monotonic is a moment by the clock that bpf_ktime_get_ns reads, in nanoseconds.
func monotonic(from time.Duration) (int64, error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return 0, err
	}
	return now.Nano() + from.Nanoseconds(), nil
}
