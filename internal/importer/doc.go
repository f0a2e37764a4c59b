// Package importer takes up the snapshots of a repository and of a host's folder that are not
// on record.
//
// It reads what internal/snapshot finds and has internal/control write the records; it decides
// neither what a snapshot may be called nor whether its record is sound. Called by the API kurabe.
//
// Invariants: one import runs at a time; one that is cut off is repeated without harm, since what
// is on record is skipped.
package importer
