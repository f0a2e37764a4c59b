// Package logs measures logs: queries over log events, and the price of exports.
package logs
