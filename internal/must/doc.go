// Package must holds the assertions for programmer mistakes.
//
// An assertion is not error handling: it is for states that no input, user or
// machine can cause, only our own code. It panics, because going on from a
// broken invariant is how two servers end up on one data folder.
// Everything may import it; it imports nothing.
package must
