// Package bed is what the benchmarks share: the flags and the report of a run, a service in a
// folder of its own with its instances, the same servers started by hand, and the load programs.
//
// It measures nothing by itself and knows no benchmark. What it starts ends with Lab.Close.
package bed
