// Package logs answers CloudWatch Logs: groups, streams, putting, reading and filtering of events.
// It translates between AWS's names and the use cases of internal/control/loggroup (records of
// groups) and internal/logread (events of all hosts).
package logs
