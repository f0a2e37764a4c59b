// Package probe watches what a trial costs: counters of the engine, processor time,
// context switches and bytes of its processes, what its sessions wait for, and, before
// and after, whether the machine itself was the same.
//
// It asks through a session of its own and reads /proc; it must not change a setting or
// create a database. Its caller is run. Invariant: a figure that cannot be had is absent
// and Notes says why; nothing is estimated in its place.
package probe
