// Package load keeps the database load of a host's servers: which sessions were active in each
// second, what they waited for, and for whom they worked. The agent adds a sample a second, the
// API asks each host and joins the answers.
//
// A server has a folder. Seconds are kept for three hours in chunks of ten seconds, minutes for
// seven days in chunks of an hour, the texts of statements for as long, a file for each day.
// A chunk has a check sum and needs no other; what a crash has cut off is lost alone.
//
// Invariants: the sum over all keys of a period is the true number of active sessions, whatever
// was left out of the keys to stay within bounds; a second that was not sampled counts for
// nothing, not for an idle one; a statement that sets a password is kept without its literals.
//
// What must not live here: how a server is asked, and the words of an API.
package load
