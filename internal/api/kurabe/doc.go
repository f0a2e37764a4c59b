// Package kurabe is the service "kurabe": actions beside those of AWS, in awsJson 1.1. They tell
// the service's own records, and start work that RDS has no action for.
//
// The members of records have the names of their JSON. A client is made from
// docs/models/kurabe/2026-11-27/service-2.json, which modelgen writes from the Go types.
// internal/service builds the API.
//
// Invariant: what is decided about a record is decided in internal/control or internal/reconcile.
package kurabe

//go:generate go run ./modelgen ../../../docs/models/kurabe/2026-11-27/service-2.json
