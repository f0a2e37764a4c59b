package sklookup

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// Fields of struct bpf_sk_lookup (include/uapi/linux/bpf.h) by their offsets.
const (
	ctxFamily    = 8
	ctxProtocol  = 12
	ctxLocalIP4  = 40 // in network order
	ctxLocalPort = 60 // in the host's order
)

// addresses is how many a table has room for.
const addresses = 16 << 10

// keyBytes is the length of a key: address and port as the program sees them.
const keyBytes = 8

// keyOf is the key of an address.
func keyOf(at netip.AddrPort) ([keyBytes]byte, error) {
	var key [keyBytes]byte
	if !at.Addr().Unmap().Is4() || at.Port() == 0 {
		return key, fmt.Errorf("socket lookup at %s: only IPv4 addresses with a port", at)
	}
	ip := at.Addr().Unmap().As4()
	copy(key[:4], ip[:])
	binary.NativeEndian.PutUint32(key[4:], uint32(at.Port()))
	return key, nil
}

func tableSpec() *ebpf.MapSpec {
	return &ebpf.MapSpec{Name: "kurabe_sockets", Type: ebpf.SockHash, KeySize: keyBytes, ValueSize: 8, MaxEntries: addresses}
}

// programSpec picks the socket of an address out of the table. When there is none, or
// the kernel does not take it, it lets the kernel look by itself.
func programSpec(table *ebpf.Map) *ebpf.ProgramSpec {
	const key = -keyBytes // on the stack
	return &ebpf.ProgramSpec{Name: "kurabe_lookup", Type: ebpf.SkLookup, AttachType: ebpf.AttachSkLookup, License: "Apache-2.0", Instructions: asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMem(asm.R2, asm.R6, ctxFamily, asm.Word),
		asm.JNE.Imm(asm.R2, unix.AF_INET, "pass"),
		asm.LoadMem(asm.R2, asm.R6, ctxProtocol, asm.Word),
		asm.JNE.Imm(asm.R2, unix.IPPROTO_TCP, "pass"),
		asm.LoadMem(asm.R2, asm.R6, ctxLocalIP4, asm.Word),
		asm.StoreMem(asm.RFP, key, asm.R2, asm.Word),
		asm.LoadMem(asm.R2, asm.R6, ctxLocalPort, asm.Word),
		asm.StoreMem(asm.RFP, key+4, asm.R2, asm.Word),
		asm.LoadMapPtr(asm.R1, table.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, key),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "pass"),
		asm.Mov.Reg(asm.R7, asm.R0),
		asm.Mov.Reg(asm.R1, asm.R6),
		asm.Mov.Reg(asm.R2, asm.R7),
		asm.Mov.Imm(asm.R3, 0),
		asm.FnSkAssign.Call(),
		asm.Mov.Reg(asm.R1, asm.R7), // the lookup took a reference
		asm.FnSkRelease.Call(),
		asm.Mov.Imm(asm.R0, skPass).WithSymbol("pass"),
		asm.Return(),
	}}
}

// skPass is SK_PASS: with a socket assigned it is taken, with none the kernel looks.
const skPass = 1
