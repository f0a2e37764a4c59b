// Package mariadb is the engine driver for MariaDB 10.11 as Debian and
// mariadb.org package it.
//
// What lives here: which versions are installed (discover), how a data folder is
// made (template, bootstrap, guard, procedure), what can be set (catalog, rule), what is
// rendered (render, option), how a live server is asked (admin, ready,
// master, probe, reload, rotate, upkeep), and how one follows another (group). What must not: when any of it happens (package
// engine), starting processes (package proc), and the wire names of the API.
//
// Called by engine and agent. DESIGN.md argues the security of it, and the
// server plugin that it rests on is in ext/kurabe_guard.
//
// Invariants: no account of the server has administrative rights, so none can
// be taken over; the tables that say who may do what are changed by account
// statements only; no session of a client reads or writes a server file, loads a
// library or runs a program; no password reaches a log, an argument or the
// statistics tables.
package mariadb
