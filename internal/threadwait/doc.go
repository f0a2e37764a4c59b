// Package threadwait asks the kernel what the threads of another process do: whether one
// computes, or in which kind of system call it waits, and on which file. It reads /proc alone and
// stops nothing.
//
// What must not live here: what a wait means to an engine.
package threadwait
