// Package proxy measures the connection proxy beside a direct connection and Debian's PgBouncer, in
// one run of interleaved blocks; and the proxy of MariaDB beside a direct connection.
package proxy
