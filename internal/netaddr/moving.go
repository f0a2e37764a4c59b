package netaddr

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// A moving address is one that several hosts may hold, one at a time: the endpoint of a
// server that moves between them. It is in no host's pool, or in another's, so it is marked
// on the interface by its label.

// labelMark follows the interface's name in the label of a moving address.
const labelMark = ":kurabe"

// labelBytesMax is IFNAMSIZ without the zero at the end.
const labelBytesMax = 15

// label is cut where the interface's name leaves no room; at least ":k" has to remain.
func (p *Pool) label() (string, error) {
	name := p.link.Attrs().Name
	label := name + labelMark
	label = label[:min(len(label), labelBytesMax)]
	if len(label) < len(name)+2 {
		return "", fmt.Errorf("the name of interface %s is too long for the label of an address", name)
	}
	return label, nil
}

// HoldMoving makes an address one of this machine's that is in the network of the pool's
// interface, wherever in it. Nobody else on the network may have it at that time; Announce
// tells the neighbours. One that it has already is no error.
func (p *Pool) HoldMoving(address netip.Addr) error {
	a, err := p.moving(address)
	if err != nil {
		return err
	}
	if err := netlink.AddrAdd(p.link, a); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("add %s to %s: %w", address, p.link.Attrs().Name, err)
	}
	return nil
}

func (p *Pool) moving(address netip.Addr) (*netlink.Addr, error) {
	if !address.Is4() {
		return nil, fmt.Errorf("add %s: IPv6 is not supported, because its addresses carry no label", address)
	}
	label, err := p.label()
	if err != nil {
		return nil, err
	}
	networks, err := networksOf(p.link)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(address) }) {
		return nil, fmt.Errorf("%s is in no network of %s", address, p.link.Attrs().Name)
	}
	if slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Addr() == address }) {
		return nil, fmt.Errorf("%s is the address of %s itself", address, p.link.Attrs().Name)
	}
	return &netlink.Addr{IPNet: single(address), Label: label}, nil
}

func single(address netip.Addr) *net.IPNet {
	return &net.IPNet{IP: address.AsSlice(), Mask: net.CIDRMask(address.BitLen(), address.BitLen())}
}

// DropMoving gives a moving address up. One that is not there is no error, and one that does
// not bear the mark stays.
func (p *Pool) DropMoving(address netip.Addr) error {
	held, err := p.Moving()
	if err != nil || !slices.Contains(held, address) {
		return err
	}
	if err := netlink.AddrDel(p.link, &netlink.Addr{IPNet: single(address)}); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
		return fmt.Errorf("remove %s from %s: %w", address, p.link.Attrs().Name, err)
	}
	return nil
}

// Moving are the moving addresses that this machine holds.
func (p *Pool) Moving() ([]netip.Addr, error) {
	label, err := p.label()
	if err != nil {
		return nil, nil // none can have been held
	}
	addresses, err := netlink.AddrList(p.link, netlink.FAMILY_V4)
	if err != nil {
		return nil, fmt.Errorf("list addresses of %s: %w", p.link.Attrs().Name, err)
	}
	var out []netip.Addr
	for _, a := range addresses {
		if q, ok := prefixOf(a); ok && q.IsSingleIP() && a.Label == label {
			out = append(out, q.Addr())
		}
	}
	return out, nil
}
