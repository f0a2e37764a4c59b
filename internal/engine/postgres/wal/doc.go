// Package wal reads PostgreSQL's write-ahead log: positions and segments, pages and their
// headers, records as recovery reads them, and the timelines that a log goes through. It
// needs no server, and changes no file.
package wal
