// Package logread reads the log events of all hosts: each host answers for the events that lie on
// it (Host), and a server merges the answers (Hosts), by time, then by stream, host and number.
//
// A host that is away leaves a gap, which every answer names. A host stops after some time and some
// bytes and says how far it has come, so a page may have few events, or none, and be followed by others.
//
// What must not live here: the records of groups, AWS's names.
package logread
