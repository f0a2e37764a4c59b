// Package stat holds the few statistics that the benchmarks quote: quantiles by
// nearest rank, the Hodges–Lehmann estimate and its exact signed-rank interval,
// and the ratio of paired measurements. Only test/bench calls it; every function
// is pure.
package stat
