package store

import (
	"cmp"
	"slices"

	"kurabe"
)

// The records that hosts have of one unit are kept sorted by host.

func assignedTo(a kurabe.Assignment) kurabe.HostID                 { return a.Host }
func reportedBy(r kurabe.InstanceReport) kurabe.HostID             { return r.Host }
func snapshotAssignedTo(a kurabe.SnapshotAssignment) kurabe.HostID { return a.Host }
func snapshotReportedBy(r kurabe.SnapshotReport) kurabe.HostID     { return r.Host }

// recordOf returns the record of one host.
func recordOf[T any](list []Record[T], h kurabe.HostID, host func(T) kurabe.HostID) (Record[T], bool) {
	for _, r := range list {
		if host(r.Value) == h {
			return r, true
		}
	}
	return Record[T]{}, false
}

// withRecord returns a new list, sorted by host, with r in its host's place.
func withRecord[T any](list []Record[T], r Record[T], host func(T) kurabe.HostID) []Record[T] {
	out := append(withoutRecord(list, host(r.Value), host), r)
	slices.SortFunc(out, func(a, b Record[T]) int { return cmp.Compare(host(a.Value), host(b.Value)) })
	return out
}

// withoutRecord returns a new list without that host's record.
func withoutRecord[T any](list []Record[T], h kurabe.HostID, host func(T) kurabe.HostID) []Record[T] {
	var out []Record[T]
	for _, r := range list {
		if host(r.Value) != h {
			out = append(out, r)
		}
	}
	return out
}
