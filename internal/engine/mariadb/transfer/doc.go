// Package transfer brings a copy of a running server's data from one host to another: the
// follower asks in a session at its source (ask), the source's host makes the copy and sends it
// (send), and the follower takes it (receive). Both ends hold to the frames of peer.go. It also
// reads the stream that mariadb-backup writes, in which form the data travels.
//
// It neither makes the copy nor has a server start on it: its caller does.
package transfer
