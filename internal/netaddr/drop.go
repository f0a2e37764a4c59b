package netaddr

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Drop takes an address off whichever interfaces have it. One that is not there is no error,
// and one with a network is the interface's own, which stays: it was never ours.
func Drop(address netip.Addr) error {
	held, err := holders(address)
	if err != nil {
		return err
	}
	var errs []error
	for _, a := range held {
		if ones, bits := a.Mask.Size(); ones != bits {
			continue
		}
		// With what the kernel said of it: the label has to match.
		link := &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Index: a.LinkIndex}}
		if err := netlink.AddrDel(link, &netlink.Addr{IPNet: a.IPNet}); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
			errs = append(errs, fmt.Errorf("remove %s: %w", address, err))
		}
	}
	return errors.Join(errs...)
}

// holders are the entries of an address on this machine's interfaces.
func holders(address netip.Addr) ([]netlink.Addr, error) {
	family := netlink.FAMILY_V4
	if !address.Is4() {
		family = netlink.FAMILY_V6
	}
	all, err := netlink.AddrList(nil, family)
	if err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	var out []netlink.Addr
	for _, a := range all {
		if p, ok := prefixOf(a); ok && p.Addr() == address.Unmap() {
			out = append(out, a)
		}
	}
	return out, nil
}
