// Package logpattern is the filter patterns of CloudWatch Logs: Parse reads one, Pattern.Match
// says whether a message has it. There are three kinds:
//
//	ERROR "out of memory" ?retry ?again -debug %^[0-9]+%   terms
//	{ $.user.id = 17 && $.path = "/api/*" }                 of messages that are JSON
//	[ip, user, ..., status = 4*, bytes > 1000]              of messages with fields between spaces
//
// The package is pure. Regular expressions are RE2, so that none explodes; a pattern has at most
// kurabe.LogPatternBytesMax bytes, and its parentheses a bounded depth.
package logpattern
