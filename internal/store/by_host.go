package store

import (
	"cmp"
	"slices"

	"kurabe"
)

// The records that hosts have of one unit are kept sorted by host, and those of one host
// by the number of the server: a host may have several servers of one instance.

// placeOf is what such a record speaks of. A snapshot has no servers: its member is "".
type placeOf struct {
	host   kurabe.HostID
	member kurabe.InstanceID
	task   kurabe.Kind // of a task, whose member is "" too
}

func assignedTo(a kurabe.Assignment) placeOf                 { return placeOf{host: a.Host, member: a.Instance} }
func reportedBy(r kurabe.InstanceReport) placeOf             { return placeOf{host: r.Host, member: r.Instance} }
func snapshotAssignedTo(a kurabe.SnapshotAssignment) placeOf { return placeOf{host: a.Host} }
func snapshotReportedBy(r kurabe.SnapshotReport) placeOf     { return placeOf{host: r.Host} }
func proxyAssignedTo(a kurabe.ProxyAssignment) placeOf       { return placeOf{host: a.Host} }
func proxyReportedBy(r kurabe.ProxyReport) placeOf           { return placeOf{host: r.Host} }

func orderedOf(d kurabe.Task) placeOf    { return placeOf{host: d.Host, task: d.Kind} }
func doneBy(r kurabe.TaskReport) placeOf { return placeOf{host: r.Host, task: r.Kind} }

func comparePlaces(a, b placeOf) int {
	return cmp.Or(cmp.Compare(a.host, b.host), cmp.Compare(a.member.Number(), b.member.Number()), cmp.Compare(a.task, b.task))
}

// recordOf returns the record of one place.
func recordOf[T any](list []Record[T], p placeOf, place func(T) placeOf) (Record[T], bool) {
	for _, r := range list {
		if place(r.Value) == p {
			return r, true
		}
	}
	return Record[T]{}, false
}

// recordOfMember returns the record of a server, from the first host, by id, that has
// one.
func recordOfMember[T any](list []Record[T], member kurabe.InstanceID, place func(T) placeOf) (Record[T], bool) {
	for _, r := range list {
		if place(r.Value).member == member {
			return r, true
		}
	}
	return Record[T]{}, false
}

// withRecord returns a new list, sorted by place, with r in its own.
func withRecord[T any](list []Record[T], r Record[T], place func(T) placeOf) []Record[T] {
	out := append(withoutRecord(list, place(r.Value), place), r)
	slices.SortFunc(out, func(a, b Record[T]) int { return comparePlaces(place(a.Value), place(b.Value)) })
	return out
}

// withoutRecord returns a new list without that place's record.
func withoutRecord[T any](list []Record[T], p placeOf, place func(T) placeOf) []Record[T] {
	var out []Record[T]
	for _, r := range list {
		if place(r.Value) != p {
			out = append(out, r)
		}
	}
	return out
}
