// Package logs measures logs: queries over log events.
package logs
