package store

import (
	"errors"

	"kurabe"
)

// Each record of a host has one writer, that host's agent, so nothing here is
// compared: the newest report is the true one.

// PutReport writes what a host sees of a thing.
func (c *Change) PutReport(r kurabe.Word) *Change {
	e := r.Envelope()
	return c.put(reportKey(e.Host, e.Ref), r, string(e.Host), e.ID)
}

// DropReport removes what a host said of a thing.
func (c *Change) DropReport(host kurabe.HostID, ref kurabe.Ref) *Change {
	return c.Delete(reportKey(host, ref))
}

// PutAssignment writes an assignment that was read at mod, 0 for the first one.
func (c *Change) PutAssignment(a kurabe.Word, mod int64) *Change {
	e := a.Envelope()
	key := assignmentKey(e.Host, e.Ref)
	return c.Require(key, mod).put(key, a, string(e.Host), e.ID)
}

// DeleteAssignment removes an assignment that was read at mod.
func (c *Change) DeleteAssignment(host kurabe.HostID, ref kurabe.Ref, mod int64) *Change {
	key := assignmentKey(host, ref)
	return c.Require(key, mod).Delete(key)
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

// DecodeAssignment reads an assignment's entry, for whoever watches a host's assignments.
func DecodeAssignment(e Entry) (kurabe.Word, error) {
	ref, ok := AssignmentOf(e.Key)
	if !ok {
		return nil, &CorruptError{Key: e.Key, Err: errors.New("it is no assignment")}
	}
	return kinds[ref.Kind].decode(e)
}

// AssignmentOf says of what thing an assignment's key speaks.
func AssignmentOf(key string) (kurabe.Ref, bool) {
	switch p := parseKey(key); p.kind {
	case KindAssignment:
		return p.instance.Ref(), true
	case KindSnapshotAssignment:
		return p.snapshot.Ref(), true
	case KindProxyAssignment:
		return p.proxy.Ref(), true
	case KindTask:
		_, known := kinds[p.task] // of a later version otherwise
		return kurabe.Ref{Kind: p.task, ID: string(p.instance)}, known
	}
	return kurabe.Ref{}, false
}
