// Package sqltext writes and reads the text of MariaDB's SQL: quoted strings and names, and
// the names and keywords of a statement. It knows no server.
package sqltext
