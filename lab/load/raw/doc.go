// Package raw makes system calls that the Go runtime does not see: it takes no place among
// GOMAXPROCS away from who makes one, and its monitor does not wake for it. That is right
// for calls that end at once, and for the wait of a thread that has nothing else to do; any
// other would keep a collection of garbage waiting.
//
// It knows nothing of loads. lab/load calls it, and a call here never waits longer than
// 100 ms.
package raw
