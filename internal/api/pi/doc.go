// Package pi answers Performance Insights: the database load of an instance by what its sessions
// wait for, by statement, user, host, database and application. It translates between AWS's
// names and those of internal/load, which counts.
//
// The shapes are botocore's, written by hand (shapes.go): the SDK's module of this service is
// not among the dependencies.
package pi
