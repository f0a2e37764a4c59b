package sockdestroy

import (
	"encoding/binary"
	"errors"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Destroy ends the connection of a socket that netlink.SocketDiagTCP has listed. One that has
// ended by itself is no error.
func Destroy(s *netlink.Socket) error {
	request := nl.NewNetlinkRequest(nl.SOCK_DESTROY, unix.NLM_F_ACK)
	request.AddRawData(encode(s))
	_, err := request.Execute(unix.NETLINK_INET_DIAG, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESTALE) { // ESTALE: others have the addresses by now
		return nil
	}
	return err
}

// encode makes a struct inet_diag_req_v2 (include/uapi/linux/inet_diag.h).
func encode(s *netlink.Socket) []byte {
	raw := []byte{s.Family, unix.IPPROTO_TCP, 0, 0}
	raw = binary.NativeEndian.AppendUint32(raw, ^uint32(0)) // whatever its state
	raw = binary.BigEndian.AppendUint16(raw, s.ID.SourcePort)
	raw = binary.BigEndian.AppendUint16(raw, s.ID.DestinationPort)
	for _, ip := range [][]byte{s.ID.Source, s.ID.Destination} {
		if s.Family == unix.AF_INET && len(ip) == 16 {
			ip = ip[12:]
		}
		raw = append(append(raw, ip...), make([]byte, 16-len(ip))...)
	}
	for _, n := range []uint32{s.ID.Interface, s.ID.Cookie[0], s.ID.Cookie[1]} {
		raw = binary.NativeEndian.AppendUint32(raw, n)
	}
	return raw
}
