// Package mariadb is the engine driver for MariaDB 10.11 as Debian and mariadb.org package it.
//
// Here are the driver and what needs a server's whole life: versions and their catalogue, templates,
// private servers that check and replay, copies and clones, and what is asked of a live server.
// Its packages, each of which imports only those above it:
//
//   - sqltext: the text of SQL
//   - guard: sessions of the service through the plugin, its triggers and procedures
//   - role, door: what an assignment's role says; sessions of accounts
//   - binlog: files of the binary log, without a server
//   - conf, parameter: the settings folder; the variables as RDS's parameters
//   - systemtables, transfer: the system schemas of a new server; a copy from host to host
//   - replica: a server's role in its group, as it is changed and watched
//
// What must not be here: when any of it happens (package engine), starting processes (package
// proc), and the wire names of the API. Called by engine and agent. DESIGN.md argues the security of
// it, and the server plugin that it rests on is in ext/kurabe_guard.
//
// Invariants: no account of the server has administrative rights, so none can be taken over; the
// tables that say who may do what are changed by account statements only; no session of a client
// reads or writes a server file, loads a library or runs a program; no password reaches a log, an
// argument or the statistics tables.
package mariadb
