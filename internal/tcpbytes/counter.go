package tcpbytes

import (
	"errors"
	"fmt"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Server is who is counted for: whose sockets have one of these addresses at this end.
type Server struct {
	At  []netip.AddrPort
	UID uint32 // of its process: another one may have the sockets of an address
	// Sole says that nobody else has sockets at its addresses.
	Sole bool
}

// Count is what the sockets of a server have sent and received since the counter was opened.
type Count struct {
	SentBytes, ReceivedBytes uint64
	Lost                     int // how often the kernel could not tell of sockets that ended
}

// Counter counts until it is closed. One goroutine uses it.
type Counter struct {
	asks, ends int // netlink sockets: for lists, and for what the kernel tells of ends
	buffer     []byte
	lost       int
	known      map[uint64]*session // by the kernel's number of the socket
	round      int
	counts     map[string]*Count
}

// session is one socket of a server.
type session struct {
	server         string
	sent, received uint64
	round          int // of the newest list that had it
}

// The kernel's names that x/sys lacks: linux/sock_diag.h, linux/inet_diag.h, net/tcp_states.h.
const (
	diagByFamily   = 20 // SOCK_DIAG_BY_FAMILY
	groupTCPEnds   = 1  // SKNLGRP_INET_TCP_DESTROY
	groupTCP6Ends  = 3  // SKNLGRP_INET6_TCP_DESTROY
	attributeInfo  = 2  // INET_DIAG_INFO
	statesWithData = 1<<1 | 1<<4 | 1<<5 | 1<<8 | 1<<9 | 1<<11
	endsBytes      = 8 << 20 // of the queue: some 4000 ends
	answerBytes    = 256 << 10
)

// request is struct inet_diag_req_v2 behind its header, for all sockets of a family.
type request struct {
	header             unix.NlMsghdr
	family, protocol   uint8
	extensions, padded uint8
	states             uint32
	id                 [48]byte
}

// message is struct inet_diag_msg. Ports and addresses are in network order.
type message struct {
	family, state, timer, retransmits uint8
	sourcePort, peerPort              [2]byte
	source, peer                      [16]byte
	device                            uint32
	cookie                            [2]uint32
	expires, receives, sends, uid     uint32
	inode                             uint32
}

// Open begins to count. It takes the right to hear of all sockets' ends (CAP_NET_ADMIN).
func Open() (*Counter, error) {
	c := &Counter{asks: -1, ends: -1, buffer: make([]byte, answerBytes), known: map[uint64]*session{}, counts: map[string]*Count{}}
	var err error
	if c.asks, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG); err == nil {
		c.ends, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_SOCK_DIAG)
	}
	if err == nil {
		err = unix.Bind(c.ends, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: 1<<(groupTCPEnds-1) | 1<<(groupTCP6Ends-1)})
	}
	if err == nil {
		err = unix.SetsockoptInt(c.ends, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, endsBytes)
	}
	if err == nil {
		err = unix.SetsockoptTimeval(c.asks, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 1})
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("hear of sockets: %w", err)
	}
	return c, nil
}

// Close ends the count.
func (c *Counter) Close() {
	for _, fd := range []int{c.asks, c.ends} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}

// Read counts for the servers, by name. A server that is not among them any more is forgotten.
func (c *Counter) Read(servers map[string]Server) (map[string]Count, error) {
	for name := range c.counts {
		if _, there := servers[name]; !there {
			delete(c.counts, name)
		}
	}
	owners := map[netip.AddrPort]string{}
	for name, s := range servers {
		if c.counts[name] == nil {
			c.counts[name] = &Count{}
		}
		for _, at := range s.At {
			owners[at] = name
		}
	}
	c.round++
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		if err := c.list(family, servers, owners); err != nil {
			return nil, fmt.Errorf("list sockets: %w", err)
		}
	}
	// After the lists, so that whatever they lack is told of here.
	if err := c.hearEnds(servers, owners); err != nil {
		return nil, fmt.Errorf("hear of sockets that ended: %w", err)
	}
	for cookie, s := range c.known {
		if s.round < c.round {
			delete(c.known, cookie)
		}
	}
	counts := make(map[string]Count, len(c.counts))
	for name, n := range c.counts {
		counts[name] = Count{n.SentBytes, n.ReceivedBytes, c.lost}
	}
	return counts, nil
}

// list has all open sockets of a family told.
func (c *Counter) list(family uint8, servers map[string]Server, owners map[netip.AddrPort]string) error {
	r := request{family: family, protocol: unix.IPPROTO_TCP, extensions: 1 << (attributeInfo - 1), states: statesWithData}
	r.header = unix.NlMsghdr{Len: uint32(unsafe.Sizeof(r)), Type: diagByFamily, Flags: unix.NLM_F_REQUEST | unix.NLM_F_DUMP, Seq: uint32(c.round)}
	raw := unsafe.Slice((*byte)(unsafe.Pointer(&r)), unsafe.Sizeof(r))
	if err := unix.Sendto(c.asks, raw, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	for {
		n, _, err := unix.Recvfrom(c.asks, c.buffer, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		done, err := each(c.buffer[:n], func(m message, info []byte) { c.take(m, info, servers, owners, false) })
		if done || err != nil {
			return err
		}
	}
}

// hearEnds takes what the kernel has told since the last time.
func (c *Counter) hearEnds(servers map[string]Server, owners map[netip.AddrPort]string) error {
	for {
		n, _, err := unix.Recvfrom(c.ends, c.buffer, 0)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return nil
		case errors.Is(err, unix.ENOBUFS):
			c.lost++
			continue
		case err != nil:
			return err
		}
		if _, err := each(c.buffer[:n], func(m message, info []byte) { c.take(m, info, servers, owners, true) }); err != nil {
			return err
		}
	}
}

// take adds what a socket has moved since it was seen last.
func (c *Counter) take(m message, info []byte, servers map[string]Server, owners map[netip.AddrPort]string, ended bool) {
	if len(info) < bytesReceivedAt+8 {
		return
	}
	cookie := uint64(m.cookie[0]) | uint64(m.cookie[1])<<32
	s := c.known[cookie]
	if s == nil {
		name, there := owners[m.at()]
		// The kernel may have forgotten whose a socket was that has ended.
		if !there || m.uid != servers[name].UID && !(ended && m.uid == 0 && servers[name].Sole) {
			return
		}
		s = &session{server: name}
		c.known[cookie] = s
	}
	sent, received := number(info, bytesAckedAt), number(info, bytesReceivedAt)
	if n := c.counts[s.server]; n != nil && sent >= s.sent && received >= s.received {
		n.SentBytes += sent - s.sent
		n.ReceivedBytes += received - s.received
	}
	s.sent, s.received, s.round = sent, received, c.round
	if ended {
		s.round = 0 // it is heard of no more
	}
}
