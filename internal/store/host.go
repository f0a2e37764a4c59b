package store

import "kurabe"

// Each record of a host has one writer, that host's agent, so nothing here is
// compared: the newest report is the true one.

// PutReport writes what a host sees of a server of an instance.
func (c *Change) PutReport(r kurabe.InstanceReport) *Change {
	return c.put(instanceReportKey(r.Host, r.Instance), r, string(r.Host), string(r.Instance))
}

// DropReport removes what a host said of a server of an instance.
func (c *Change) DropReport(host kurabe.HostID, id kurabe.InstanceID) *Change {
	return c.Delete(instanceReportKey(host, id))
}

// PutSnapshotReport writes what a host sees of a snapshot.
func (c *Change) PutSnapshotReport(r kurabe.SnapshotReport) *Change {
	return c.put(snapshotReportKey(r.Host, r.Snapshot), r, string(r.Host), string(r.Snapshot))
}

// DropSnapshotReport removes what a host said of a snapshot.
func (c *Change) DropSnapshotReport(host kurabe.HostID, id kurabe.SnapshotID) *Change {
	return c.Delete(snapshotReportKey(host, id))
}

// PutHost writes what a host is and can do.
func (c *Change) PutHost(h kurabe.HostReport) *Change {
	return c.put(hostReportKey(h.Host), h, string(h.Host))
}

// PutLogs writes what a host keeps of the logs of its instances. Packed: a host may
// have many, and the record is written every few seconds.
func (c *Change) PutLogs(r kurabe.LogReport) *Change {
	key := logReportKey(r.Host)
	if !keySafe(string(r.Host)) {
		return c.fail(unsafeSegment(string(r.Host)))
	}
	value, err := encodePacked(key, r)
	if err != nil {
		return c.fail(err)
	}
	return c.Put(key, value)
}

// PutCatalog writes the parameters of an engine version as a host found them.
func (c *Change) PutCatalog(host kurabe.HostID, cat kurabe.Catalog) *Change {
	for _, s := range []string{string(host), string(cat.Engine), cat.Version} {
		if !keySafe(s) {
			return c.fail(unsafeSegment(s))
		}
	}
	key := catalogKey(host, cat.Engine, cat.Version)
	value, err := encodePacked(key, cat)
	if err != nil {
		return c.fail(err)
	}
	return c.Put(key, value)
}

// DecodeAssignment reads an assignment's entry, for whoever watches a host's
// assignments.
func DecodeAssignment(e Entry) (kurabe.Assignment, error) { return decode[kurabe.Assignment](e) }

// AssignmentOf says which server of an instance an assignment's key speaks of.
func AssignmentOf(key string) (kurabe.HostID, kurabe.InstanceID, bool) {
	p := parseKey(key)
	return p.host, p.instance, p.kind == KindAssignment
}

// DecodeSnapshotAssignment is DecodeAssignment for snapshots.
func DecodeSnapshotAssignment(e Entry) (kurabe.SnapshotAssignment, error) {
	return decode[kurabe.SnapshotAssignment](e)
}

// SnapshotAssignmentOf says which snapshot an assignment's key speaks of.
func SnapshotAssignmentOf(key string) (kurabe.HostID, kurabe.SnapshotID, bool) {
	p := parseKey(key)
	return p.host, p.snapshot, p.kind == KindSnapshotAssignment
}
