package store

import (
	"maps"
	"slices"

	"kurabe"
)

// Snapshot is everything stored about one snapshot, read at one revision. It and
// everything it points to is shared and must not be mutated.
type Snapshot struct {
	ID      kurabe.SnapshotID
	Spec    *kurabe.SnapshotSpec
	SpecMod int64 // revision of the spec's last write, for PutSnapshot
	// Status is nil until the planner has looked at the snapshot.
	Status    *kurabe.SnapshotStatus
	StatusMod int64
	// Names are the names that belong to the snapshot, with the revision that took
	// each.
	Names map[string]int64
	// Assignments and Reports are sorted by host.
	Assignments []Record[kurabe.SnapshotAssignment]
	Reports     []Record[kurabe.SnapshotReport]
}

// Name is the name that the user or the planner gave it.
func (s *Snapshot) Name() string {
	if s.Spec == nil {
		return ""
	}
	return s.Spec.Name
}

// Key is the name by which the snapshot is unique.
func (s *Snapshot) Key() string {
	if s.Spec == nil {
		return ""
	}
	return s.Spec.Key()
}

// Assignment returns what a host was told about the snapshot.
func (s *Snapshot) Assignment(host kurabe.HostID) (Record[kurabe.SnapshotAssignment], bool) {
	return recordOf(s.Assignments, placeOf{host: host}, snapshotAssignedTo)
}

// Report returns what a host sees of the snapshot.
func (s *Snapshot) Report(host kurabe.HostID) (kurabe.SnapshotReport, bool) {
	r, ok := recordOf(s.Reports, placeOf{host: host}, snapshotReportedBy)
	return r.Value, ok
}

func (s *Snapshot) identity() *kurabe.SnapshotID { return &s.ID }
func (s *Snapshot) names() *map[string]int64     { return &s.Names }
func (s *Snapshot) hasSpec() bool                { return s.Spec != nil }

func (s *Snapshot) empty() bool {
	return s.Spec == nil && s.Status == nil && len(s.Assignments) == 0 && len(s.Reports) == 0 && len(s.Names) == 0
}

// instances are those that the snapshot shows: one.
func (s *Snapshot) instances() []kurabe.InstanceID {
	var out []kurabe.InstanceID
	if s.Spec != nil {
		out = append(out, s.Spec.Source.Instance)
	}
	for _, a := range s.Assignments {
		if id := a.Value.Source.Instance; !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

// originals are the snapshots that it is a copy of: one, or none.
func (s *Snapshot) originals() []kurabe.SnapshotID {
	var out []kurabe.SnapshotID
	if s.Spec != nil && s.Spec.CopyOf != "" {
		out = append(out, s.Spec.CopyOf)
	}
	for _, a := range s.Assignments {
		if id := a.Value.From; id != "" && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

// CreateSnapshot writes a new spec and takes its name. Of two creates of one name
// exactly one commits.
func (c *Change) CreateSnapshot(s kurabe.SnapshotSpec) *Change {
	key := snapshotSpecKey(s.ID)
	return takeName(c, snapshotNameKey(s.Key()), s.Key(), s.ID).Require(key, 0).put(key, s, string(s.ID))
}

// PutSnapshot writes a spec that was read at specMod.
func (c *Change) PutSnapshot(s kurabe.SnapshotSpec, specMod int64) *Change {
	return c.RequireSnapshot(s.ID, specMod).put(snapshotSpecKey(s.ID), s, string(s.ID))
}

// RequireSnapshot demands that the spec is the one read at specMod.
func (c *Change) RequireSnapshot(id kurabe.SnapshotID, specMod int64) *Change {
	return c.Require(snapshotSpecKey(id), specMod)
}

// RequireSnapshotStatus demands that the status is the one read at statusMod: that the
// planner has decided nothing since.
func (c *Change) RequireSnapshotStatus(id kurabe.SnapshotID, statusMod int64) *Change {
	return c.Require(snapshotStatusKey(id), statusMod)
}

// RequireSnapshotsUnwritten demands that no spec was written after revision: a
// quota that was counted over all snapshots still holds at commit.
func (c *Change) RequireSnapshotsUnwritten(revision int64) *Change {
	return c.RequireUnwritten(snapshotSpecs, revision)
}

// PutSnapshotStatus writes a status that was read at statusMod, 0 for the first
// one.
func (c *Change) PutSnapshotStatus(s kurabe.SnapshotStatus, statusMod int64) *Change {
	key := snapshotStatusKey(s.ID)
	return c.Require(key, statusMod).put(key, s, string(s.ID))
}

// DeleteSnapshot removes every record of a snapshot but its reports, which are
// their agents' to drop, and gives its name back. It conflicts when one of them
// changed since s was read.
func (c *Change) DeleteSnapshot(s *Snapshot) *Change {
	if s.Spec != nil {
		c.RequireSnapshot(s.ID, s.SpecMod).Delete(snapshotSpecKey(s.ID))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Names)) {
		key := snapshotNameKey(name)
		c.Require(key, s.Names[name]).Delete(key)
	}
	if s.Status != nil {
		key := snapshotStatusKey(s.ID)
		c.Require(key, s.StatusMod).Delete(key)
	}
	for _, a := range s.Assignments {
		c.DeleteAssignment(a.Value.Host, s.ID.Ref(), a.ModRevision)
	}
	return c
}
