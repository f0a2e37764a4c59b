package netaddr

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Announce tells the neighbours on the network that an address is at this machine, so that
// they do not go on sending to the one that had it before (gratuitous ARP). It does not say
// whether they heard it: say it again if that matters. An address of the loopback interface
// has no neighbours.
func Announce(address netip.Addr) error {
	if !address.Is4() {
		return fmt.Errorf("announce %s: not built for IPv6", address)
	}
	if address.IsLoopback() {
		return nil
	}
	held, err := holders(address)
	if err != nil {
		return fmt.Errorf("announce %s: %w", address, err)
	}
	if len(held) == 0 {
		return fmt.Errorf("announce %s: no interface of this machine has this address", address)
	}
	var errs []error
	for _, a := range held {
		if err := announceOn(a.LinkIndex, address); err != nil {
			errs = append(errs, fmt.Errorf("announce %s: %w", address, err))
		}
	}
	return errors.Join(errs...)
}

const (
	arpRequest = 1
	arpReply   = 2
)

func announceOn(index int, address netip.Addr) error {
	link, err := netlink.LinkByIndex(index)
	if err != nil {
		return err
	}
	hardware := link.Attrs().HardwareAddr
	if len(hardware) != etherBytes || link.Attrs().Flags&net.FlagLoopback != 0 {
		return nil // nobody asks there for hardware addresses
	}
	// Protocol 0 receives nothing.
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("packet socket: %w", err)
	}
	defer unix.Close(fd)
	to := &unix.SockaddrLinklayer{Protocol: bigEndian(unix.ETH_P_ARP), Ifindex: index, Halen: etherBytes}
	for i := range etherBytes {
		to.Addr[i] = 0xff
	}
	// Both forms: a host may be set to believe only one of them.
	for _, operation := range []uint16{arpRequest, arpReply} {
		if err := unix.Sendto(fd, arp(operation, hardware, address), 0, to); err != nil {
			return fmt.Errorf("send on %s: %w", link.Attrs().Name, err)
		}
	}
	return nil
}

const etherBytes = 6

// arp is a packet of RFC 826 by which a host tells of itself: sender and target are the same
// address. The hardware address of the target is not known to a request, and our own
// in a reply (RFC 5944, section 4.6).
func arp(operation uint16, hardware net.HardwareAddr, address netip.Addr) []byte {
	packet := binary.BigEndian.AppendUint16(nil, unix.ARPHRD_ETHER)
	packet = binary.BigEndian.AppendUint16(packet, unix.ETH_P_IP)
	packet = append(packet, etherBytes, byte(address.BitLen()/8))
	packet = binary.BigEndian.AppendUint16(packet, operation)
	packet = append(append(packet, hardware...), address.AsSlice()...)
	target := make([]byte, etherBytes)
	if operation == arpReply {
		target = hardware
	}
	return append(append(packet, target...), address.AsSlice()...)
}

// bigEndian is how the kernel wants the number of a protocol, whatever our own order.
func bigEndian(n uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, n))
}
