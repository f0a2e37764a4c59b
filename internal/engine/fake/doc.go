// Package fake is an engine that lives in memory: its steps are those of the real
// engines, chosen by the same engine.Next, and its faults are scripted. It serves
// fleets of many instances in tests and benchmarks, and nothing else.
package fake
