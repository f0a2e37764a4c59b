// Package account keeps the book of user ids on a host: which of them runs which
// folder's programs. An id is a number without an entry in the system's files. The
// book says nothing of engines; whoever takes an id says by a name what it is for.
//
// Invariant: an id has one name at a time, and none while anything of it may still
// exist. The book is on the disk before the caller has the id.
package account
