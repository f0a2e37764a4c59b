// Package logquery is the query language of CloudWatch Logs Insights: Parse reads a query,
// Compile makes a Program of it, and a Run evaluates that over blocks of events, with one worker
// for each core.
//
// A program has a part that runs where the events lie, up to its first stats, limit or dedup, and
// the rest. The result of the first part is a Partial: it is merged with those of other hosts and
// completed by Program.Finish.
//
// The package is pure: it reads no file and no clock, and knows no host. Of the store of events it
// knows the form of a block alone. Everything that grows with the data has a bound: groups and rows by bytes (workBytesMax),
// regular expressions by length. RE2 evaluates them in linear time.
//
// An event that a leading filter on @message drops costs no allocation and no reading of its
// fields: the literals that a match must contain are searched in the whole block first.
package logquery
