package netcut

import (
	"errors"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// license is not that of the service: programs that read the kernel's memory must be under one
// that it takes for compatible with its own. These few instructions are under either.
const license = "Dual BSD/GPL"

const (
	// endsMost bounds processes times their peers, also of those that were started meanwhile.
	endsMost = 1024
	// socketsMost bounds connections: five processes that try again every millisecond need a
	// minute to fill it, and those of the engines wait a second and more.
	socketsMost = 256 << 10
)

// maps are what the programs share: which process is cut from whom, the sockets (by the
// kernel's cookie of each) that packets are lost of, and how many were.
type maps struct{ ends, sockets, lost *ebpf.Map }

func newMaps() (m maps, failure error) {
	var errs [3]error
	m.ends, errs[0] = ebpf.NewMap(&ebpf.MapSpec{Name: "kurabe_ends", Type: ebpf.Hash, KeySize: 8, ValueSize: 4, MaxEntries: endsMost})
	m.sockets, errs[1] = ebpf.NewMap(&ebpf.MapSpec{Name: "kurabe_cut", Type: ebpf.Hash, KeySize: 8, ValueSize: 4, MaxEntries: socketsMost, Flags: noPrealloc})
	m.lost, errs[2] = ebpf.NewMap(&ebpf.MapSpec{Name: "kurabe_lost", Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	if failure = errors.Join(errs[:]...); failure != nil {
		return m, errors.Join(failure, m.close())
	}
	return m, nil
}

// noPrealloc is BPF_F_NO_PREALLOC: memory for sockets as they come.
const noPrealloc = 1

func (m maps) close() error { return errors.Join(m.ends.Close(), m.sockets.Close(), m.lost.Close()) }

// programs are those of a cut that ends at a moment: the one that notes sockets comes first.
func (m maps) programs(end int64, l layout) []*ebpf.ProgramSpec {
	spec := func(name string, of ebpf.ProgramType, at ebpf.AttachType, code asm.Instructions) *ebpf.ProgramSpec {
		return &ebpf.ProgramSpec{Name: name, Type: of, AttachType: at, License: license, Instructions: code}
	}
	return []*ebpf.ProgramSpec{
		spec("kurabe_note", ebpf.CGroupSockAddr, ebpf.AttachCGroupInet4Connect, m.note(end, l)),
		spec("kurabe_out", ebpf.CGroupSKB, ebpf.AttachCGroupInetEgress, m.lose(end)),
		spec("kurabe_in", ebpf.CGroupSKB, ebpf.AttachCGroupInetIngress, m.lose(end)),
	}
}

// Places on the stack.
const (
	stackKey    = -8  // process and address, or a cookie
	stackRead   = -16 // what was read of the kernel's memory
	stackMarked = -24
)

// ctxUserIP4 is where struct bpf_sock_addr (include/uapi/linux/bpf.h) has the address, in
// network order.
const ctxUserIP4 = 4

// goOn lets everything pass: what a program answers that loses nothing.
const goOn = 1

// over jumps to pass from the end on.
func over(end int64) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.FnKtimeGetNs.Call(),
		asm.LoadImm(asm.R1, end, asm.DWord),
		asm.JGE.Reg(asm.R0, asm.R1, "pass"),
	}
}

// note marks the socket of a process, or of a child of one, that connects to its peer.
func (m maps) note(end int64, l layout) asm.Instructions {
	code := append(over(end),
		asm.LoadMem(asm.R1, asm.R6, ctxUserIP4, asm.Word),
		asm.StoreMem(asm.RFP, stackKey+4, asm.R1, asm.Word),
		asm.FnGetCurrentTask.Call(),
		asm.Mov.Reg(asm.R7, asm.R0),
	)
	code = append(code, m.named(l, "parent")...)
	code = append(code, asm.JNE.Imm(asm.R0, 0, "mark"))
	parent := read(asm.R7, l.parent, asm.DWord)
	parent[0] = parent[0].WithSymbol("parent")
	code = append(code, parent...)
	code = append(code, asm.LoadMem(asm.R7, asm.RFP, stackRead, asm.DWord))
	code = append(code, m.named(l, "pass")...)
	return append(code,
		asm.JEq.Imm(asm.R0, 0, "pass"),
		asm.Mov.Reg(asm.R1, asm.R6).WithSymbol("mark"),
		asm.FnGetSocketCookie.Call(),
		asm.StoreMem(asm.RFP, stackKey, asm.R0, asm.DWord),
		asm.StoreImm(asm.RFP, stackMarked, 1, asm.Word),
		asm.LoadMapPtr(asm.R1, m.sockets.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, stackKey),
		asm.Mov.Reg(asm.R3, asm.RFP),
		asm.Add.Imm(asm.R3, stackMarked),
		asm.Mov.Imm(asm.R4, 0), // BPF_ANY
		asm.FnMapUpdateElem.Call(),
		asm.Mov.Imm(asm.R0, goOn).WithSymbol("pass"),
		asm.Return(),
	)
}

// named looks up the process of the task in R7 with the address of the key; R0 is 0 of one
// that is cut from nobody there. To other: it is of other numbers of processes than ours. The
// number is that of the innermost namespace, which is what /proc shows to those within.
func (m maps) named(l layout, other string) asm.Instructions {
	code := read(asm.R7, l.leader, asm.DWord)
	code = append(code, asm.LoadMem(asm.R8, asm.RFP, stackRead, asm.DWord))
	code = append(code, read(asm.R8, l.pid, asm.DWord)...)
	code = append(code, asm.LoadMem(asm.R8, asm.RFP, stackRead, asm.DWord))
	code = append(code, read(asm.R8, l.level, asm.Word)...)
	code = append(code,
		asm.LoadMem(asm.R1, asm.RFP, stackRead, asm.Word),
		asm.Mul.Imm(asm.R1, l.each),
		asm.Add.Reg(asm.R8, asm.R1),
	)
	code = append(code, read(asm.R8, l.numbers+l.number, asm.Word)...)
	code = append(code,
		asm.LoadMem(asm.R1, asm.RFP, stackRead, asm.Word),
		asm.StoreMem(asm.RFP, stackKey, asm.R1, asm.Word),
	)
	code = append(code, read(asm.R8, l.numbers+l.space, asm.DWord)...)
	code = append(code, asm.LoadMem(asm.R8, asm.RFP, stackRead, asm.DWord))
	code = append(code, read(asm.R8, l.spaceInode, asm.Word)...)
	return append(code,
		asm.LoadMem(asm.R1, asm.RFP, stackRead, asm.Word),
		asm.JNE.Imm32(asm.R1, l.own, other),
		asm.LoadMapPtr(asm.R1, m.ends.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, stackKey),
		asm.FnMapLookupElem.Call(),
	)
}

// read copies what the kernel has at an offset from a register to the stack. Of what cannot be
// read the kernel makes zeros.
func read(base asm.Register, offset int32, size asm.Size) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R1, asm.RFP),
		asm.Add.Imm(asm.R1, stackRead),
		asm.Mov.Imm(asm.R2, int32(size.Sizeof())),
		asm.Mov.Reg(asm.R3, base),
		asm.Add.Imm(asm.R3, offset),
		asm.FnProbeReadKernel.Call(),
	}
}

// lose drops the packets of sockets that are marked, and counts them.
func (m maps) lose(end int64) asm.Instructions {
	return append(over(end),
		asm.Mov.Reg(asm.R1, asm.R6),
		asm.FnGetSocketCookie.Call(),
		asm.StoreMem(asm.RFP, stackKey, asm.R0, asm.DWord),
		asm.LoadMapPtr(asm.R1, m.sockets.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, stackKey),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "pass"),
		asm.StoreImm(asm.RFP, stackRead, 0, asm.Word),
		asm.LoadMapPtr(asm.R1, m.lost.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, stackRead),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "lost"),
		asm.Mov.Imm(asm.R1, 1),
		asm.StoreXAdd(asm.R0, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("lost"),
		asm.Return(),
		asm.Mov.Imm(asm.R0, goOn).WithSymbol("pass"),
		asm.Return(),
	)
}
