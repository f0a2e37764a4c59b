// Package simulated runs the planner, the agents of several hosts and the links between them
// for hours of virtual time, in one testing/synctest bubble: engines, network, clocks and
// machines are in memory, everything that decides is real. Clients append to lists and read
// them through the endpoint, faults are drawn from a seed, and what the clients saw is judged
// by test/appends. A run that fails says how to run it again.
package simulated
