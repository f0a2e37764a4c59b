package netcut

import (
	"fmt"
	"os"

	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"
)

// layout is where the running kernel keeps what the program reads, in bytes.
type layout struct {
	leader, parent, pid int32 // of task_struct
	level, numbers      int32 // of pid
	number, space, each int32 // of upid: nr, ns, and its length
	spaceInode          int32 // of pid_namespace
	own                 int32 // the inode of our own, which numbers of processes are of
}

// readLayout asks the kernel's own description of its types.
func readLayout() (l layout, failure error) {
	kernel, err := btf.LoadKernelSpec()
	if err != nil {
		return l, fmt.Errorf("the kernel has no type information (/sys/kernel/btf/vmlinux): %w", err)
	}
	at := func(to *int32, name string, members ...string) {
		var s *btf.Struct
		if err := kernel.TypeByName(name, &s); err != nil {
			failure = fmt.Errorf("the kernel's type %s: %w", name, err)
			return
		}
		for n, member := range members {
			offset, of, found := find(s.Members, member)
			if !found {
				failure = fmt.Errorf("the kernel's type %s has no %s", name, member)
				return
			}
			*to += offset
			if s, found = btf.As[*btf.Struct](of); !found && n+1 < len(members) {
				failure = fmt.Errorf("%s of the kernel's type %s is no structure", member, name)
				return
			}
		}
		if len(members) == 0 {
			*to = int32(s.Size)
		}
	}
	at(&l.leader, "task_struct", "group_leader")
	at(&l.parent, "task_struct", "real_parent")
	at(&l.pid, "task_struct", "thread_pid")
	at(&l.level, "pid", "level")
	at(&l.numbers, "pid", "numbers")
	at(&l.number, "upid", "nr")
	at(&l.space, "upid", "ns")
	at(&l.each, "upid")
	at(&l.spaceInode, "pid_namespace", "ns", "inum")
	if failure != nil {
		return l, failure
	}
	var own unix.Stat_t
	if err := unix.Stat("/proc/thread-self/ns/pid", &own); err != nil {
		return l, &os.PathError{Op: "stat", Path: "/proc/thread-self/ns/pid", Err: err}
	}
	l.own = int32(uint32(own.Ino)) // as a word is compared
	return l, nil
}

// find looks for a member, also in structures and unions without a name.
func find(members []btf.Member, name string) (offset int32, of btf.Type, found bool) {
	for _, m := range members {
		if m.Name == name {
			return int32(m.Offset.Bytes()), m.Type, true
		}
		if m.Name != "" {
			continue
		}
		var inner []btf.Member
		if s, ok := btf.As[*btf.Struct](m.Type); ok {
			inner = s.Members
		} else if u, ok := btf.As[*btf.Union](m.Type); ok {
			inner = u.Members
		}
		if offset, of, found = find(inner, name); found {
			return offset + int32(m.Offset.Bytes()), of, true
		}
	}
	return 0, nil, false
}
