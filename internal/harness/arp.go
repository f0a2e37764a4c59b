package harness

import (
	"encoding/binary"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// ARPWord is what a machine says of itself in a packet of ARP: that it has an address.
type ARPWord struct {
	At      time.Time
	Machine string // its hardware address
	Address netip.Addr
}

// ARPWatch is what the machines of a network say at the tests' own address, where the clients
// are: what they say to all, and what they say to it.
type ARPWatch struct {
	mu   sync.Mutex // guards said
	said []ARPWord
}

// arpWait is how often a listener looks whether the test has ended.
const arpWait = 100 * time.Millisecond

// WatchARP listens until the test ends.
func (n *Network) WatchARP(t testing.TB) *ARPWatch {
	t.Helper()
	protocol := binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, unix.ETH_P_ARP))
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	try(t, err)
	patience := unix.NsecToTimeval(arpWait.Nanoseconds())
	try(t, unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &patience))
	try(t, unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: n.bridge.Index}))
	w := &ARPWatch{}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				w.listen(fd)
			}
		}
	}()
	t.Cleanup(func() {
		close(stop)
		<-done
		unix.Close(fd)
	})
	return w
}

// listen takes note of one packet, if one comes.
func (w *ARPWatch) listen(fd int) {
	const etherIPv4Bytes = 28
	packet := make([]byte, 64)
	n, _, err := unix.Recvfrom(fd, packet, 0)
	if err != nil || n < etherIPv4Bytes || packet[4] != 6 || packet[5] != 4 {
		return
	}
	address, _ := netip.AddrFromSlice(packet[14:18])
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(w.said, ARPWord{time.Now(), net.HardwareAddr(packet[8:14]).String(), address})
}

// Said is what was said of an address since a moment, in order.
func (w *ARPWatch) Said(address string, since time.Time) (out []ARPWord) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, word := range w.said {
		if word.Address.String() == address && !word.At.Before(since) {
			out = append(out, word)
		}
	}
	return out
}

// Hardware is the hardware address by which the machine is known on its network.
func (m *Machine) Hardware(t testing.TB) string {
	t.Helper()
	h, err := netlink.NewHandleAt(m.ns)
	try(t, err)
	defer h.Close()
	link, err := h.LinkByName("eth0")
	try(t, err)
	return link.Attrs().HardwareAddr.String()
}
