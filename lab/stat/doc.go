// Package stat holds the statistics of the lab: quantiles by nearest rank, the
// Hodges–Lehmann estimate with its interval, ratios of paired measurements, verdicts,
// the price list of a run, the end of a warm-up.
//
// Every function is pure and knows no metric: no I/O, no clock, and chance only from
// generators whose seed is in the code or is the data, so that a figure computed again
// from its file is the same figure. Odd input (empty, NaN, infinite, too long) gives
// NaN, false or a verdict that says nothing, never a panic. result, run, report and
// test/bench call it; it imports nothing of this module.
//
// The unit of all of it is the block: seconds within a trial are not independent, so no
// interval here that decides anything is made of them.
package stat
