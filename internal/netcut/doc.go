// Package netcut loses what processes on this machine say to each other over TCP, both ways,
// for a time, while everybody else reaches them: three BPF programs on the control group at
// the top. The first one, at connect, notes the sockets by which the processes named (and
// their children) connect to the addresses named; the other two lose every packet that such a
// socket sends or is to receive. Connections that are there already are found in /proc.
//
// A cut ends by itself: its end, by the kernel's monotonic clock, is a constant in each of
// the programs, and they are attached by links that hang on descriptors of this process, and
// that nobody pins. So a process that is frozen cannot let a cut outlive its time, and one
// that dies ends it. Called by internal/drill.
//
// It needs root (CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON, CAP_SYS_PTRACE), a mounted control
// group of version 2 that the processes are in, Linux 5.8 and the kernel's own description of
// its types (/sys/kernel/btf/vmlinux), and serves IPv4. Where it cannot be had, Start says why.
package netcut
