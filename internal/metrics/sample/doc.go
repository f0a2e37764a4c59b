// Package sample makes the samples of a second from two readings of a server. It is pure: the
// agent reads the control group, the disk and the engine, and appends the result.
//
// Invariants: a counter that has gone back, or that is of another process than before, gives
// no value; the divisor is the time that has passed, by a clock that is never set; a second
// that was not measured is a gap.
package sample
