// Package warden ends a database server at the end of its lease.
package warden
