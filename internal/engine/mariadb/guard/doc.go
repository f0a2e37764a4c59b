// Package guard is the Go side of the server plugin kurabe_guard: sessions of the service
// over its socket, the trigger files and procedures that go with it, and the list of a server's
// threads.
//
// Only here does a session begin that has all rights. It belongs to no account, and the plugin
// ends a statement of it that would run a user's code (ext/kurabe_guard/door.c).
//
// A test attacks the plugin's C code outside of a server.
package guard
