// Package appends judges what clients saw of a database that may lose nothing: lists for each
// key, to which transactions append values that nobody else appends, and which they read. It
// serves the tests with real servers and those in simulated time.
package appends
