// Package expression is CloudWatch's metric math: it parses an expression once and evaluates
// it over series that its caller has fetched.
//
// Invariants: length, depth and searches of an expression are bounded; a period in which an
// operand has no value has none in the result.
//
// What must not live here: where series come from, and what a metric means.
package expression
