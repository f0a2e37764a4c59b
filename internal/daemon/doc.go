// Package daemon keeps processes that outlive the service: engines, the private servers
// that replay a log, and whatever else a host runs beside the service.
//
// A daemon has a lock, a record, a log and a folder that it works in. The service that
// comes next finds it by the record and goes on with it; no state of a daemon is in the
// service's memory.
//
// Invariants: the record is read and written by proc alone, so that versions of the service
// find each other's daemons; a record is forgotten only where the end of the process was
// wanted, as a record without a process means a crash.
//
// Called by engine and its drivers. It knows neither what a daemon serves nor when it is ready.
package daemon
