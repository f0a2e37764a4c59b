package sklookup

import (
	"errors"
	"fmt"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"kurabe/internal/logkey"
	"kurabe/internal/sockdestroy"
)

// Cut ends the sessions that clients have with servers at an address, on both sides at
// once, as a reset does: their server may hang. Sessions of this process's own user are
// not touched. A kernel without CONFIG_INET_DIAG_DESTROY cannot; the sessions then end
// with their server.
func (t *Table) Cut(address netip.AddrPort) {
	if err := cut(address); err != nil {
		t.log.Warn("sessions end with their server only", logkey.Address, address, logkey.Error, err)
	}
}

func cut(address netip.AddrPort) error {
	sockets, err := netlink.SocketDiagTCP(unix.AF_INET)
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) { // others came and went meanwhile
		return fmt.Errorf("list sockets: %w", err)
	}
	var failed []error
	for _, s := range sockets {
		if !atAddress(s, address) || s.State == stateListen || s.UID == uint32(os.Getuid()) {
			continue
		}
		if err := sockdestroy.Destroy(s); err != nil {
			failed = append(failed, fmt.Errorf("end the session of %s:%d: %w", s.ID.Destination, s.ID.DestinationPort, err))
		}
	}
	return errors.Join(failed...)
}

// stateListen is TCP_LISTEN (include/net/tcp_states.h).
const stateListen = 10

func atAddress(s *netlink.Socket, address netip.AddrPort) bool {
	ip, ok := netip.AddrFromSlice(s.ID.Source)
	return ok && ip.Unmap() == address.Addr().Unmap() && s.ID.SourcePort == address.Port()
}
