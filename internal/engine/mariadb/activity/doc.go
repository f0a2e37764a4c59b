// Package activity lists the active sessions of a MariaDB server with what each waits for, once
// a second. The server itself times waits only with its performance schema, which costs memory
// and a restart; so three sources are joined: the process list (who, statement, state), the
// kernel (whether the session's thread computes, or in which system call it waits, on which
// file), and InnoDB's lock waits, which are asked for only while a thread waits for another.
//
// The guard names the thread of each connection after its number; that is how the process list
// and the kernel are joined (ext/kurabe_guard). Where a thread has no such name, or the kernel
// does not tell of it, the state of the process list is the wait.
package activity
