// Package kurabe holds the nouns of the service: what a user asks for (specs),
// what a host must run (assignments), what a host sees (reports) and what users
// are told (status and events), with the rules that make a value of them valid.
//
// It imports the standard library only and does no I/O, so every room may use
// it. Each record has exactly one writer: the API writes specs, the elected
// planner writes assignments, status and events, each agent writes its own
// reports.
package kurabe
