// Package warden ends a server whose right to write has run out, whatever has become of
// the agent that held it.
//
// The right is a deadline in a page of memory that two processes share. The agent moves
// it after each renewal of its lease that was confirmed; the warden, a process of its own
// in the server's control group, looks at nothing else. When the deadline passes it kills
// whatever works in the server's data folder. An agent that is dead, stopped, hung or cut
// off moves no deadline, so nothing that happens to it keeps a deposed writer alive.
//
//   - Time is CLOCK_BOOTTIME: it goes on while a machine sleeps and is never set back.
//   - A deadline is counted from the moment a renewal was sent, not from its answer.
//   - The page is armed before the server starts. A warden ends when the page is
//     released, which the agent does when no server runs, or when it has killed; so none
//     outlives its task to kill a later server.
//   - One warden for a page: it holds a lock on the file, which also tells others that it
//     lives.
package warden
