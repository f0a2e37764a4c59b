package probe

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"kurabe/lab/dial"
)

// serverNames are the names of the processes that are database servers. Another one that
// listens is a proxy, as before a container, and its cost is not the server's.
var serverNames = []string{"postgres", "postmaster", "mariadbd", "mysqld"}

// socketsMax bounds the lines that are read of the kernel's table of sockets.
const socketsMax = 1 << 20

// ErrRemote is why nothing can be seen of the processes of a server elsewhere.
var ErrRemote = errors.New("the server runs on another machine")

// Find gives the process that listens at the server's address, on this machine. The error
// says why there is none to be seen.
func Find(s dial.Server) ([]int, error) {
	addresses, err := local(s.Host)
	if err != nil {
		return nil, err
	}
	return find(procRoot, addresses, uint16(s.Port))
}

// Listeners gives the processes that listen at an address on this machine, whatever they are.
func Listeners(s dial.Server) ([]int, error) {
	addresses, err := local(s.Host)
	if err != nil {
		return nil, err
	}
	return listening(procRoot, addresses, uint16(s.Port))
}

func listening(root string, addresses []netip.Addr, port uint16) ([]int, error) {
	at := netip.AddrPortFrom(addresses[0], port).String()
	inodes := map[string]bool{}
	for _, table := range []string{"tcp", "tcp6"} {
		data, err := os.ReadFile(filepath.Join(root, "net", table))
		if err != nil {
			continue // a machine may do without one of the two
		}
		for _, l := range listeners(data) {
			if l.at.Port() == port && (l.at.Addr().IsUnspecified() || slices.Contains(addresses, l.at.Addr())) {
				inodes["socket:["+l.inode+"]"] = true
			}
		}
	}
	if len(inodes) == 0 {
		return nil, fmt.Errorf("nothing listens at %s in this network namespace", at)
	}
	pids, hidden := holders(root, inodes)
	if len(pids) == 0 && hidden {
		return nil, fmt.Errorf("the process that listens at %s is another user's: run as that user or as root to see it", at)
	}
	if len(pids) == 0 {
		return nil, fmt.Errorf("no process that listens at %s can be seen from here", at)
	}
	return pids, nil
}

func find(root string, addresses []netip.Addr, port uint16) ([]int, error) {
	pids, err := listening(root, addresses, port)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, pid := range pids {
		data, err := os.ReadFile(filepath.Join(root, strconv.Itoa(pid), "comm"))
		name := strings.TrimSpace(string(data))
		if err == nil && slices.Contains(serverNames, name) {
			return []int{pid}, nil
		}
		names = append(names, name)
	}
	return nil, fmt.Errorf("at %s listens %s, not the database server itself", netip.AddrPortFrom(addresses[0], port), strings.Join(names, ", "))
}

// local resolves a host and says which of its addresses are this machine's.
func local(host string) ([]netip.Addr, error) {
	ips, err := net.LookupIP(host)
	if err != nil {
		return nil, fmt.Errorf("find out whether the server runs on this machine: %w", err)
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("read the addresses of this machine: %w", err)
	}
	var list []netip.Addr
	for _, ip := range ips {
		mine := ip.IsLoopback() || slices.ContainsFunc(own, func(a net.Addr) bool {
			n, ok := a.(*net.IPNet)
			return ok && n.IP.Equal(ip)
		})
		if a, ok := netip.AddrFromSlice(ip); ok && mine {
			list = append(list, a.Unmap())
		}
	}
	if len(list) == 0 {
		return nil, ErrRemote
	}
	return list, nil
}

// listener is a socket that takes connections.
type listener struct {
	at    netip.AddrPort
	inode string
}

// listeners reads /proc/net/tcp or tcp6. A line that is not understood is skipped.
func listeners(data []byte) []listener {
	var list []listener
	lines := bufio.NewScanner(bytes.NewReader(data))
	for n := 0; lines.Scan() && n < socketsMax; n++ {
		const local, state, inode = 1, 3, 9
		fields := strings.Fields(lines.Text())
		if len(fields) <= inode || fields[state] != "0A" { // TCP_LISTEN
			continue
		}
		if at, ok := socketAddress(fields[local]); ok {
			list = append(list, listener{at, fields[inode]})
		}
	}
	return list
}

// socketAddress reads "0100007F:1538": words of four bytes, each as the processor keeps
// them, then the port.
func socketAddress(text string) (netip.AddrPort, bool) {
	host, port, ok := strings.Cut(text, ":")
	raw, err := hex.DecodeString(host)
	if !ok || err != nil || len(raw) != 4 && len(raw) != 16 {
		return netip.AddrPort{}, false
	}
	for n := 0; n < len(raw); n += 4 {
		slices.Reverse(raw[n : n+4])
	}
	number, err := strconv.ParseUint(port, 16, 16)
	addr, ok := netip.AddrFromSlice(raw)
	if err != nil || !ok {
		return netip.AddrPort{}, false
	}
	return netip.AddrPortFrom(addr.Unmap(), uint16(number)), true
}

// holders are the processes that hold one of the sockets, by number; hidden says that some
// process did not let us look.
func holders(root string, sockets map[string]bool) (pids []int, hidden bool) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, true
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		dir := filepath.Join(root, e.Name(), "fd")
		files, err := os.ReadDir(dir)
		hidden = hidden || errors.Is(err, os.ErrPermission)
		for _, f := range files {
			if to, err := os.Readlink(filepath.Join(dir, f.Name())); err == nil && sockets[to] {
				pids = append(pids, pid)
				break
			}
		}
	}
	slices.Sort(pids)
	return pids, hidden
}
