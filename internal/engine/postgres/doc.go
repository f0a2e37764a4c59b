// Package postgres is the engine driver for PostgreSQL 13 to 18 as Debian and
// PGDG package it.
//
// What lives here: which versions are installed and what they offer (discover,
// tree, extension, locale), how a data folder is made (template, roles, sysid),
// what can be set (catalog, rule), what is rendered (render, access) and how a
// live server is asked (door, conn, ready, master, probe, reload). Every session
// begins at the door (door.go), with what keeps a tenant's code out. What must not: when
// any of it happens (package engine), starting processes (package proc), and the
// wire names of the API.
//
// A server that follows another is in the files group*.go: what is rendered for it, how its
// data is made or won back, and how writer and follower are looked at.
//
// Called by engine and agent. DESIGN.md argues the security of it.
//
// Invariants: no session of a client ever has superuser rights, reads a server
// file or runs a program; the service's own sessions run no code and obey no
// setting that a client could have planted; no password reaches a log, an
// argument or the statistics views.
package postgres
