// Package fake is an engine that lives in memory: its steps are those of the real
// engines, chosen by the same engine.Next, and its faults are scripted. It serves
// fleets of many instances in tests and benchmarks, and nothing else. Servers of a group
// have a log of writes: followers copy their source's, so that a test can tell whether
// what was acknowledged is still there. What the service itself writes is not in it.
package fake
