package packetfilter

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"kurabe/internal/sockdestroy"
)

// connection is a socket of this machine.
type connection struct {
	local, remote netip.AddrPort
	account       int
	own           bool // of this process
	socket        *netlink.Socket
}

// cut ends the connections that servers' rules do not permit, on both sides at once. A kernel
// without CONFIG_INET_DIAG_DESTROY cannot; their packets are lost all the same.
func cut(servers []Server) error {
	all, err := connections()
	if err != nil {
		return err
	}
	var failed []error
	for _, c := range refused(all, servers) {
		if err := sockdestroy.Destroy(c.socket); err != nil {
			failed = append(failed, fmt.Errorf("end the connection of %s to %s: %w", c.remote, c.local, err))
		}
	}
	return errors.Join(failed...)
}

// refused are the connections that rules do not permit: of clients to a server, and of a server's
// account to others.
func refused(all []connection, servers []Server) (list []connection) {
	from := map[[2]netip.AddrPort]connection{}
	for _, c := range all {
		from[[2]netip.AddrPort{c.local, c.remote}] = c
	}
	for _, s := range servers {
		if s.Filter == nil {
			continue
		}
		accounts := accountsFor(s, servers)
		for _, c := range all {
			if slices.Contains(s.Addresses, c.local) {
				client, here := from[[2]netip.AddrPort{c.remote, c.local}]
				pass := here && (client.own || slices.Contains(accounts, client.account))
				if !pass && !s.Filter.permits(c.remote.Addr()) {
					list = append(list, c)
				}
			} else if s.Account > 0 && c.account == s.Account && !s.mayHave(c) {
				list = append(list, c)
			}
		}
	}
	return list
}

// mayHave says whether a server may have a connection that it made.
func (s Server) mayHave(c connection) bool {
	f := s.Filter
	return f.reaches(c.remote) || slices.Contains(s.Addresses, c.remote) || slices.Contains(s.Follows, c.remote) || slices.Contains(f.Hosts, c.remote.Addr())
}

// The states of sockets that have a peer (include/net/tcp_states.h).
const (
	stateTimeWait = 6
	stateClose    = 7
	stateListen   = 10
)

func connections() ([]connection, error) {
	own := ownSockets()
	var list []connection
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		sockets, err := netlink.SocketDiagTCP(family)
		if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) { // others came and went meanwhile
			return nil, fmt.Errorf("list sockets: %w", err)
		}
		for _, s := range sockets {
			if s.State == stateListen || s.State == stateTimeWait || s.State == stateClose {
				continue
			}
			local, remote := addrPort(s.ID.Source, s.ID.SourcePort), addrPort(s.ID.Destination, s.ID.DestinationPort)
			list = append(list, connection{local, remote, int(s.UID), own[s.INode], s})
		}
	}
	return list, nil
}

func addrPort(ip net.IP, port uint16) netip.AddrPort {
	a, _ := netip.AddrFromSlice(ip)
	return netip.AddrPortFrom(a.Unmap(), port)
}

// ownSockets are the inodes of this process's sockets.
func ownSockets() map[uint32]bool {
	own := map[uint32]bool{}
	entries, _ := os.ReadDir("/proc/self/fd") // without it the service's sessions begin anew
	for _, e := range entries {
		to, err := os.Readlink("/proc/self/fd/" + e.Name())
		number, isSocket := strings.CutPrefix(to, "socket:[")
		if inode, wrong := strconv.ParseUint(strings.TrimSuffix(number, "]"), 10, 32); err == nil && isSocket && wrong == nil {
			own[uint32(inode)] = true
		}
	}
	return own
}
