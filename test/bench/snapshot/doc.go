// Package snapshot measures snapshots and what is restored from them and from the log, beside
// copies that people make by hand, and the price of a user of its own for each instance.
package snapshot
