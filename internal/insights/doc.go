// Package insights runs queries of logs, in the language of logquery. A query runs where the
// events lie: each host evaluates its part (Parts), and the server that was asked to start the
// query merges them (Queries). The id of a query names the host of that server, so every server
// can be asked for its results.
//
// What must not live here: the language, the store of events, AWS's names.
//
// Queries are in memory alone: with the process they are gone. Their number, their time and what
// is kept of their results are bounded. A host that nobody asks any more for a part stops it.
package insights
