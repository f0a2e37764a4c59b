// Package etcdnode runs the service's own etcd inside its process, and holds
// elections over it.
//
// A lone node listens nowhere: no port, no socket. The client it hands out calls
// the server's functions directly, so nobody but this process can reach the
// state. Every acknowledged write is on disk (fsync stays on). With others beside it,
// a node listens for them alone, behind mutual TLS, and a write is on the disks of
// a majority.
//
// A data folder belongs to one process at a time (a file lock), and one that
// looks damaged is refused before etcd may touch it: etcd would make a new log
// beside an old database, and lose writes, or end the process without a word to
// the user. What must not live here: anything about what the keys mean.
package etcdnode
