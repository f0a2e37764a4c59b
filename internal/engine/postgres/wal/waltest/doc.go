// Package waltest writes WAL as a server would, record by record, for tests of what reads it.
// It knows the form of pages and records by itself, so that a mistake of package wal shows.
package waltest
