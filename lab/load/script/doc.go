// Package script parses the transactions of a workload, in pgbench's notation, and gives the
// text of a statement with the values of its variables.
//
// It opens no connection and draws no number of its own: the caller gives the source of chance,
// so that the same seed makes the same statements. Called by load, for its own generator and
// for the names of pgbench's statements.
package script
