// Package cgroup limits what a group of processes may use: CPU time, memory, and
// operations and bytes per second on a disk. It serves cgroup v1 and v2, also both
// at once, a controller being on one of them.
//
// Detect says which limits this host lets us enforce, and if not, why, in words for
// users. A limit that cannot be enforced is an error of Ensure, never ignored: a
// database class is a promise about its neighbours too. Groups survive us, and
// Ensure finds them again; nothing here kills a process.
//
// What the kernel does not do:
//
//   - v1 throttles reads and direct or synchronous writes only. Buffered writes
//     reach the disk from the kernel's flusher threads, which belong to no group of
//     ours, so they are not throttled until the engine calls fsync. MariaDB with
//     O_DIRECT is limited exactly; PostgreSQL's checkpoints are limited at their
//     fsync. v2 charges write-back to the group, on ext4, XFS and btrfs.
//   - A limit counts on the device it names. On overlay, tmpfs and network file
//     systems there is none (see DeviceOf).
//   - v1 cannot lower a memory limit below what is in use; v2 could, by killing, so
//     we refuse it there as well.
//
// Called by agent. Imports nothing of ours.
package cgroup
