// Package hostread reads from a host what is that host's alone and belongs into no record:
// log files, lag, the state of a drill. Handle registers a kind of question where the data
// lie; Ask and Stream ask it from anywhere, this machine or another, in the same way.
//
// Each class of kinds has a fixed number of slots on a host, so that slow readers of one
// class take no place of another. A question that finds no slot is answered CodeThrottled
// at once. A cancelled question gives its slot back at once.
//
// What must not live here: the way to a host (hostlink carries frames), what is read, and
// anything that orders what a host is to be; that goes round the ring.
package hostread
