package notify

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"
)

// ErrAddress: what a name leads to is no address for notifications.
var ErrAddress = errors.New("is not allowed")

// refused are blocks of addresses at which no subscriber is: those of one link, where clouds have
// their metadata, and those that are no single machine's. Private networks are none of them: that
// is where subscribers are.
var refused = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("224.0.0.0/3"),
	netip.MustParsePrefix("100.100.100.200/32"), // metadata of Alibaba Cloud
	netip.MustParsePrefix("168.63.129.16/32"),   // Azure's host
	netip.MustParsePrefix("::/128"), netip.MustParsePrefix("fe80::/10"), netip.MustParsePrefix("ff00::/8"),
	netip.MustParsePrefix("fd00:ec2::/32"),    // metadata of EC2
	netip.MustParsePrefix("fd20:ce::254/128"), // metadata of Google Cloud
}

// embedding are blocks whose addresses carry one of IPv4, and where in them it begins.
var embedding = []struct {
	block netip.Prefix
	at    int
}{{netip.MustParsePrefix("64:ff9b::/96"), 12}, {netip.MustParsePrefix("2002::/16"), 2}, {netip.MustParsePrefix("::/96"), 12}}

// AddressGuard says where notifications may be sent: it looks at the address that a connection is
// made to, after the name was resolved.
type AddressGuard struct {
	// Allow are blocks that are free, whatever else is said.
	Allow []netip.Prefix
	// OwnPorts are ports of the service itself, which no subscriber has on this machine.
	OwnPorts []int
	// OwnAddresses lists the addresses of this machine.
	OwnAddresses func() []netip.Addr
}

// Check says why nothing is sent to an address.
func (g AddressGuard) Check(to netip.AddrPort) error {
	a := to.Addr().Unmap().WithZone("")
	for _, e := range embedding {
		if e.block.Contains(a) && a.Is6() && a != netip.IPv6Unspecified() && a != netip.IPv6Loopback() {
			bytes := a.As16()
			a = netip.AddrFrom4([4]byte(bytes[e.at : e.at+4]))
		}
	}
	contains := func(p netip.Prefix) bool { return p.Contains(a) }
	switch {
	case slices.ContainsFunc(g.Allow, contains):
		return nil
	case slices.ContainsFunc(refused, contains):
		return fmt.Errorf("the address %s %w: it is one of a link, of metadata or of no single machine; --notify-allow %s would allow it", a, ErrAddress, a)
	case slices.Contains(g.OwnPorts, int(to.Port())) && (a.IsLoopback() || slices.Contains(g.OwnAddresses(), a)):
		return fmt.Errorf("the address %s %w: it is the service's own; --notify-allow %s would allow it", to, ErrAddress, a)
	}
	return nil
}

const dialTimeout = 5 * time.Second

// dial connects to what the guard allows. The check is made of each address that is tried, so a
// name that leads elsewhere a moment later is checked again.
func (g AddressGuard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTimeout, Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("the address %s %w", address, ErrAddress)
		}
		return g.Check(to)
	}}
	return d.DialContext(ctx, network, address)
}
