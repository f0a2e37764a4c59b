// Package store keeps the service's records: specs, status, assignments,
// reports, who may write an instance with several servers, parameter and subnet
// groups and events, typed, over a small key-value seam.
//
// KV is that seam, with two implementations that pass the same suite
// (storetest): Etcd, the real one, and Memory, its twin for tests. Records are
// JSON, one key each (keys.go holds every key), and stay under RecordBytesMax.
// A Change gathers writes and the conditions under which they hold, and commits
// them as one transaction. A View is a typed copy of everything, fed by the
// store's watch, and is what handlers and the planner read.
//
// What must not live here: decisions. The store knows which records belong
// together and which name is taken, not what a status means.
//
// Invariants: a name belongs to at most one unit of its kind; a record that was
// read and is written back is compared with the revision that was read; a record
// that does not decode is reported with its key and never taken for absent
// without a word: an instance names those of its records that cannot be read, and
// is left alone meanwhile.
package store
