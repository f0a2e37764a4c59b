package tcpbytes

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Where struct tcp_info has tcpi_bytes_acked and tcpi_bytes_received.
const (
	bytesAckedAt    = int(unsafe.Offsetof(unix.TCPInfo{}.Bytes_acked))
	bytesReceivedAt = int(unsafe.Offsetof(unix.TCPInfo{}.Bytes_received))
)

var errCutOff = errors.New("a message of the kernel is cut off")

func number(raw []byte, at int) uint64 { return binary.NativeEndian.Uint64(raw[at:]) }

// at is this end of a socket.
func (m message) at() netip.AddrPort {
	port := binary.BigEndian.Uint16(m.sourcePort[:])
	if m.family == unix.AF_INET {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(m.source[:4])), port)
	}
	return netip.AddrPortFrom(netip.AddrFrom16(m.source).Unmap(), port)
}

// each calls for every socket of a packet, with its tcp_info, and says whether the packet ends
// a list.
func each(raw []byte, take func(message, []byte)) (done bool, err error) {
	const headerBytes, messageBytes = int(unix.SizeofNlMsghdr), int(unsafe.Sizeof(message{}))
	for len(raw) >= headerBytes {
		length, kind := int(binary.NativeEndian.Uint32(raw)), binary.NativeEndian.Uint16(raw[4:])
		if length < headerBytes || length > len(raw) {
			return false, errCutOff
		}
		body := raw[headerBytes:length]
		raw = raw[min(len(raw), align(length)):]
		switch {
		case kind == unix.NLMSG_DONE:
			return true, nil
		case kind == unix.NLMSG_ERROR:
			if len(body) < 4 {
				return false, errCutOff
			}
			return true, unix.Errno(-int32(binary.NativeEndian.Uint32(body)))
		case kind != diagByFamily:
			continue
		case len(body) < messageBytes:
			return false, errCutOff
		}
		var m message
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&m)), messageBytes), body)
		take(m, attribute(body[messageBytes:]))
	}
	return false, nil
}

// attribute is the value of INET_DIAG_INFO, nil without one.
func attribute(raw []byte) []byte {
	for len(raw) >= unix.SizeofRtAttr {
		length, kind := int(binary.NativeEndian.Uint16(raw)), binary.NativeEndian.Uint16(raw[2:])
		if length < unix.SizeofRtAttr || length > len(raw) {
			return nil
		}
		if kind == attributeInfo {
			return raw[unix.SizeofRtAttr:length]
		}
		raw = raw[min(len(raw), align(length)):]
	}
	return nil
}

// align rounds up to where the next part of a netlink message begins.
func align(n int) int { return (n + 3) &^ 3 }
