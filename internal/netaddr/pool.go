package netaddr

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Pool is the addresses that a host may hold.
type Pool struct {
	prefix  netip.Prefix
	network netip.Prefix // of link, with prefix in it
	own     netip.Addr   // of this machine in it
	link    netlink.Link
}

// Open finds the interface for a pool: one that is up and has a network which holds all of
// it. Loopback addresses need nothing; for them it returns nil.
func Open(prefix netip.Prefix) (*Pool, error) {
	if prefix.Addr().IsLoopback() {
		return nil, nil
	}
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("adding addresses of %s needs root; a loopback network such as 127.66.0.0/16 does not", prefix)
	}
	links, err := netlink.LinkList()
	if err != nil {
		return nil, fmt.Errorf("list interfaces: %w", err)
	}
	for _, link := range links {
		networks, err := networksOf(link)
		if err != nil {
			return nil, err
		}
		if n := slices.IndexFunc(networks, func(n netip.Prefix) bool { return holds(n, prefix) }); n >= 0 {
			return &Pool{prefix, networks[n].Masked(), networks[n].Addr(), link}, nil
		}
	}
	return nil, fmt.Errorf("no interface of this machine that is up has a network with all of %s in it", prefix)
}

// Network is that of the interface which the pool is a part of.
func (p *Pool) Network() netip.Prefix { return p.network }

// Own is this machine's address in that network, from which it connects to others there.
func (p *Pool) Own() netip.Addr { return p.own }

// networksOf are the networks of an interface that is up; an address of its own, such as
// those that we add, is none.
func networksOf(link netlink.Link) ([]netip.Prefix, error) {
	if link.Attrs().Flags&net.FlagUp == 0 || link.Attrs().Flags&net.FlagLoopback != 0 {
		return nil, nil
	}
	addresses, err := netlink.AddrList(link, netlink.FAMILY_ALL)
	if err != nil {
		return nil, fmt.Errorf("list addresses of %s: %w", link.Attrs().Name, err)
	}
	var out []netip.Prefix
	for _, a := range addresses {
		if p, ok := prefixOf(a); ok && !p.IsSingleIP() {
			out = append(out, p)
		}
	}
	return out, nil
}

func prefixOf(a netlink.Addr) (netip.Prefix, bool) {
	ip, ok := netip.AddrFromSlice(a.IP)
	ones, _ := a.Mask.Size()
	return netip.PrefixFrom(ip.Unmap(), ones), ok
}

func holds(network, part netip.Prefix) bool {
	return network.Addr().Is4() == part.Addr().Is4() && network.Bits() <= part.Bits() && network.Contains(part.Addr())
}

// Hold makes an address one of this machine's. One that it has already is no error.
func (p *Pool) Hold(address netip.Addr) error {
	a, err := p.single(address)
	if err != nil {
		return err
	}
	// Duplicate address detection would keep a server from it for a second.
	a.Flags = unix.IFA_F_NODAD
	if err := netlink.AddrAdd(p.link, a); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("add %s to %s: %w", address, p.link.Attrs().Name, err)
	}
	return nil
}

// Drop gives an address up. One that is not there is no error.
func (p *Pool) Drop(address netip.Addr) error {
	a, err := p.single(address)
	if err != nil {
		return err
	}
	if err := netlink.AddrDel(p.link, a); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
		return fmt.Errorf("remove %s from %s: %w", address, p.link.Attrs().Name, err)
	}
	return nil
}

// single is an address as we add it: without a network.
func (p *Pool) single(address netip.Addr) (*netlink.Addr, error) {
	if !p.prefix.Contains(address) {
		return nil, fmt.Errorf("%s is not in the pool %s", address, p.prefix)
	}
	return &netlink.Addr{IPNet: single(address)}, nil
}

// Held are the addresses of the pool that this machine has and that are ours: the
// interface's own has a network.
func (p *Pool) Held() ([]netip.Addr, error) {
	addresses, err := netlink.AddrList(p.link, netlink.FAMILY_ALL)
	if err != nil {
		return nil, fmt.Errorf("list addresses of %s: %w", p.link.Attrs().Name, err)
	}
	var out []netip.Addr
	for _, a := range addresses {
		if q, ok := prefixOf(a); ok && q.IsSingleIP() && p.prefix.Contains(q.Addr()) {
			out = append(out, q.Addr())
		}
	}
	return out, nil
}
