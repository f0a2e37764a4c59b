// Package labproof turns the lab on itself: its generator against pgbench and against a server
// that costs nothing, costs that are planted and have to be found, and simulated studies whose
// truth is known.
package labproof
