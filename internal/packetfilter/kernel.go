package packetfilter

import (
	"errors"
	"fmt"
	"net/netip"
	"os"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"kurabe/internal/ownconn"
)

// Registers of the kernel's machine: the first 16 bytes, and the second ones.
const (
	register1 = 1
	register9 = 9 // 4 bytes, the second quarter of register 1: a concatenation goes on there
)

// batchBytes is room for one transaction: 10,000 rules have some 5 MiB.
const batchBytes = 32 << 20

func open() (*nftables.Conn, error) {
	return nftables.New(nftables.WithSockOptions(func(c *netlink.Conn) error {
		return errors.Join(c.SetWriteBuffer(batchBytes), c.SetReadBuffer(batchBytes))
	}))
}

// write replaces the table of a name by a ruleset, or removes it for nil, in one transaction.
func write(name string, r *ruleset) error {
	conn, err := open()
	if err != nil {
		return err
	}
	table := &nftables.Table{Name: name, Family: nftables.TableFamilyINet}
	conn.AddTable(table) // so that there is one to remove
	conn.DelTable(table)
	if r != nil {
		if err := add(conn, conn.AddTable(table), r); err != nil {
			return err
		}
	}
	return conn.Flush()
}

// add has the chains of a ruleset made. Those that others jump to come first.
func add(conn *nftables.Conn, table *nftables.Table, r *ruleset) error {
	hooks := map[string]*nftables.ChainHook{hookInput: nftables.ChainHookInput, hookOutput: nftables.ChainHookOutput}
	accept := nftables.ChainPolicyAccept
	for _, c := range r.chains {
		made := &nftables.Chain{Name: c.name, Table: table}
		if c.hook != "" {
			made.Type, made.Hooknum, made.Priority, made.Policy = nftables.ChainTypeFilter, hooks[c.hook], nftables.ChainPriorityFilter, &accept
		}
		conn.AddChain(made)
		for _, rule := range c.rules {
			code, err := rule.code(conn, table)
			if err != nil {
				return fmt.Errorf("rule %q: %w", rule, err)
			}
			conn.AddRule(&nftables.Rule{Table: table, Chain: made, Exprs: code})
		}
	}
	return nil
}

// code is a rule for the kernel's machine.
func (r rule) code(conn *nftables.Conn, table *nftables.Table) ([]expr.Any, error) {
	if r.leads != nil {
		return leadsCode(conn, table, r.leads)
	}
	var code []expr.Any
	for _, m := range r.matches {
		of, err := m.code(conn, table)
		if err != nil {
			return nil, err
		}
		code = append(code, of...)
	}
	verdicts := map[string]expr.VerdictKind{"accept": expr.VerdictAccept, "drop": expr.VerdictDrop, "return": expr.VerdictReturn}
	if kind, plain := verdicts[r.verdict]; plain {
		return append(code, &expr.Verdict{Kind: kind}), nil
	}
	return append(code, &expr.Verdict{Kind: expr.VerdictJump, Chain: r.verdict[len("jump "):]}), nil
}

// leadsCode looks up destination address and port.
func leadsCode(conn *nftables.Conn, table *nftables.Table, leads []lead) ([]expr.Any, error) {
	key, err := nftables.ConcatSetType(nftables.TypeIPAddr, nftables.TypeInetService)
	if err != nil {
		return nil, err
	}
	set := &nftables.Set{Table: table, Anonymous: true, Constant: true, IsMap: true, Concatenation: true, KeyType: key, DataType: nftables.TypeVerdict}
	var elements []nftables.SetElement
	for _, l := range leads {
		ip := l.to.Addr().As4()
		bytes := append(append(ip[:], binaryutil.BigEndian.PutUint16(l.to.Port())...), 0, 0)
		elements = append(elements, nftables.SetElement{Key: bytes, VerdictData: &expr.Verdict{Kind: expr.VerdictJump, Chain: l.chain}})
	}
	if err := conn.AddSet(set, elements); err != nil {
		return nil, err
	}
	return append(append(family(unix.NFPROTO_IPV4), protocol(unix.IPPROTO_TCP)...),
		&expr.Payload{DestRegister: register1, Base: expr.PayloadBaseNetworkHeader, Offset: daddr4, Len: 4},
		&expr.Payload{DestRegister: register9, Base: expr.PayloadBaseTransportHeader, Offset: dport, Len: 2},
		&expr.Lookup{SourceRegister: register1, DestRegister: 0, IsDestRegSet: true, SetName: set.Name, SetID: set.ID},
	), nil
}

// Offsets in headers of IPv4, IPv6, TCP and UDP.
const (
	saddr4   = 12
	daddr4   = 16
	daddr6   = 24
	dport    = 2
	tcpFlags = 13
)

func family(number byte) []expr.Any { return meta(expr.MetaKeyNFPROTO, []byte{number}) }

func protocol(number byte) []expr.Any { return meta(expr.MetaKeyL4PROTO, []byte{number}) }

// meta compares what the kernel knows of a packet.
func meta(key expr.MetaKey, with []byte) []expr.Any {
	return []expr.Any{&expr.Meta{Key: key, Register: register1}, &expr.Cmp{Op: expr.CmpOpEq, Register: register1, Data: with}}
}

func interfaceName(name string) []byte {
	return append([]byte(name), make([]byte, unix.IFNAMSIZ-len(name))...)
}

func (m match) code(conn *nftables.Conn, table *nftables.Table) ([]expr.Any, error) {
	switch {
	case m.loopback:
		return meta(expr.MetaKeyIIFNAME, interfaceName("lo")), nil
	case m.goesLo:
		return meta(expr.MetaKeyOIFNAME, interfaceName("lo")), nil
	case m.protocol == "tcp":
		return protocol(unix.IPPROTO_TCP), nil
	case m.protocol == "udp":
		return protocol(unix.IPPROTO_UDP), nil
	case m.established:
		const syn, ack = 0x02, 0x10
		return append(protocol(unix.IPPROTO_TCP),
			&expr.Payload{DestRegister: register1, Base: expr.PayloadBaseTransportHeader, Offset: tcpFlags, Len: 1},
			&expr.Bitwise{SourceRegister: register1, DestRegister: register1, Len: 1, Mask: []byte{syn | ack}, Xor: []byte{0}},
			&expr.Cmp{Op: expr.CmpOpNeq, Register: register1, Data: []byte{syn}}), nil
	case m.from != nil:
		return fromCode(conn, table, m.from)
	case m.to.IsValid():
		return toCode(m.to), nil
	case m.account > 0:
		return meta(expr.MetaKeySKUID, binaryutil.NativeEndian.PutUint32(uint32(m.account))), nil
	case m.own:
		return append(meta(expr.MetaKeySKUID, binaryutil.NativeEndian.PutUint32(0)), meta(expr.MetaKeyMARK, binaryutil.NativeEndian.PutUint32(ownconn.Mark))...), nil
	}
	return []expr.Any{
		&expr.Payload{DestRegister: register1, Base: expr.PayloadBaseTransportHeader, Offset: dport, Len: 2},
		&expr.Cmp{Op: expr.CmpOpGte, Register: register1, Data: binaryutil.BigEndian.PutUint16(m.ports[0])},
		&expr.Cmp{Op: expr.CmpOpLte, Register: register1, Data: binaryutil.BigEndian.PutUint16(m.ports[1])},
	}, nil
}

// fromCode looks the source address up in a set of networks. The rule stands behind one that has
// made sure of IPv4.
func fromCode(conn *nftables.Conn, table *nftables.Table, networks []netip.Prefix) ([]expr.Any, error) {
	if networks[0].Bits() == 0 {
		return nil, nil // everybody
	}
	set := &nftables.Set{Table: table, Anonymous: true, Constant: true, Interval: true, KeyType: nftables.TypeIPAddr}
	if err := conn.AddSet(set, intervals(networks)); err != nil {
		return nil, err
	}
	return []expr.Any{
		&expr.Payload{DestRegister: register1, Base: expr.PayloadBaseNetworkHeader, Offset: saddr4, Len: 4},
		&expr.Lookup{SourceRegister: register1, SetName: set.Name, SetID: set.ID},
	}, nil
}

// intervals are the elements of a set of networks: where each begins, and the first address
// after it, unless there is none or the next network begins there.
func intervals(networks []netip.Prefix) (list []nftables.SetElement) {
	end := netip.Addr{}
	for _, p := range networks {
		if first := p.Addr(); first == end {
			list = list[:len(list)-1] // they touch
		} else {
			list = append(list, nftables.SetElement{Key: first.AsSlice()})
		}
		if end = last(p).Next(); end.IsValid() {
			list = append(list, nftables.SetElement{Key: end.AsSlice(), IntervalEnd: true})
		}
	}
	return list
}

// last is the last address of a network.
func last(p netip.Prefix) netip.Addr {
	raw := p.Addr().AsSlice()
	for bit := p.Bits(); bit < len(raw)*8; bit++ {
		raw[bit/8] |= 1 << (7 - bit%8)
	}
	a, _ := netip.AddrFromSlice(raw)
	return a
}

// toCode compares the destination address.
func toCode(p netip.Prefix) []expr.Any {
	number, offset := byte(unix.NFPROTO_IPV4), uint32(daddr4)
	if p.Addr().Is6() {
		number, offset = unix.NFPROTO_IPV6, daddr6
	}
	size := p.Addr().BitLen() / 8
	mask := make([]byte, size)
	for bit := range p.Bits() {
		mask[bit/8] |= 1 << (7 - bit%8)
	}
	return append(family(number),
		&expr.Payload{DestRegister: register1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: uint32(size)},
		&expr.Bitwise{SourceRegister: register1, DestRegister: register1, Len: uint32(size), Mask: mask, Xor: make([]byte, size)},
		&expr.Cmp{Op: expr.CmpOpEq, Register: register1, Data: p.Masked().Addr().AsSlice()})
}

// Probe says why this process cannot filter packets, nil where it can. It makes a table with one
// rule of each form, and takes it away in the same transaction.
func Probe() error {
	if os.Geteuid() != 0 {
		return errors.New("nftables needs root")
	}
	conn, err := open()
	if err != nil {
		return fmt.Errorf("nftables: %w", err)
	}
	table := conn.AddTable(&nftables.Table{Name: "kurabe-probe", Family: nftables.TableFamilyINet})
	at := netip.MustParseAddrPort("192.0.2.1:1")
	one := Server{ID: "probe", Account: 1, Addresses: []netip.AddrPort{at}, Filter: &Rules{
		Sources: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, Destinations: []Destination{{Network: netip.MustParsePrefix("192.0.2.0/24"), ToPort: 1}},
	}}
	if err := add(conn, table, render([]Server{one})); err != nil {
		return fmt.Errorf("nftables: %w", err)
	}
	conn.DelTable(table)
	if err := conn.Flush(); err != nil {
		return fmt.Errorf("nftables cannot be used (nf_tables of the kernel, CAP_NET_ADMIN): %w", err)
	}
	return nil
}

// exists says whether there is a table of a name.
func exists(name string) (bool, error) {
	conn, err := open()
	if err != nil {
		return false, err
	}
	tables, err := conn.ListTablesOfFamily(nftables.TableFamilyINet)
	if err != nil {
		return false, err
	}
	for _, t := range tables {
		if t.Name == name {
			return true, nil
		}
	}
	return false, nil
}
