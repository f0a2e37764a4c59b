package store

import (
	"maps"
	"slices"

	"kurabe"
)

// Instance is everything stored about one instance, read at one revision. It
// and everything it points to is shared and must not be mutated.
type Instance struct {
	ID      kurabe.InstanceID
	Spec    *kurabe.InstanceSpec
	SpecMod int64 // revision of the spec's last write, for PutInstance
	// Status is nil until the planner has looked at the instance.
	Status    *kurabe.InstanceStatus
	StatusMod int64
	// Names are the names (see Key) that belong to the instance, with the revision
	// that took each: usually one, two while a rename waits for its window.
	Names map[string]int64
	// Group says who may write, and who else there is; nil of an instance with one server.
	Group    *kurabe.Group
	GroupMod int64 // revision of the group's last write, 0 without one
	// Assignments and Reports are those of every server of it, sorted by host, those of
	// one host by the server's number.
	Assignments []Record[kurabe.Assignment]
	Reports     []Record[kurabe.InstanceReport]
	// Tasks are what hosts do for it again and again, with what came of that.
	Tasks       []Record[kurabe.Task]
	TaskReports []Record[kurabe.TaskReport]
	// Unreadable are the keys, sorted, of its spec, status, group and assignments that
	// are there and do not decode. What else is here may then be old, or a part: nothing
	// may be decided from it.
	Unreadable []string
}

// Name is the name in force: a rename that waited for the maintenance window
// holds once the planner has applied it.
func (i *Instance) Name() string {
	if i.Spec == nil {
		return ""
	}
	if i.Status != nil && i.Spec.NextName != "" && i.Spec.NextSeq > 0 && i.Status.AppliedNext >= i.Spec.NextSeq {
		return i.Spec.NextName
	}
	return i.Spec.Name
}

// Key is the name in force as it is unique: a DB cluster may be called like an instance.
func (i *Instance) Key() string {
	if i.Spec == nil {
		return ""
	}
	return kurabe.NameKey(i.Name(), i.Spec.Cluster)
}

// Writer is the server that clients speak with: the only one, or that of the group which
// may write.
func (i *Instance) Writer() kurabe.InstanceID {
	if i.Group != nil {
		return i.Group.Primary
	}
	return i.ID
}

// AssignmentOf returns what the host of a server was told about it.
func (i *Instance) AssignmentOf(member kurabe.InstanceID) (Record[kurabe.Assignment], bool) {
	return recordOfMember(i.Assignments, member, assignedTo)
}

// ReportOf returns what is seen of a server by the host that it is assigned to, or, when
// it is assigned to none any more, by the first host that tells of it.
func (i *Instance) ReportOf(member kurabe.InstanceID) (kurabe.InstanceReport, bool) {
	if a, ok := i.AssignmentOf(member); ok {
		r, ok := recordOf(i.Reports, assignedTo(a.Value), reportedBy)
		return r.Value, ok
	}
	r, ok := recordOfMember(i.Reports, member, reportedBy)
	return r.Value, ok
}

func (i *Instance) identity() *kurabe.InstanceID { return &i.ID }
func (i *Instance) names() *map[string]int64     { return &i.Names }
func (i *Instance) hasSpec() bool                { return i.Spec != nil }

func (i *Instance) empty() bool {
	return i.Spec == nil && i.Status == nil && i.Group == nil && len(i.Assignments) == 0 && len(i.Reports) == 0 && len(i.Tasks) == 0 && len(i.TaskReports) == 0 &&
		len(i.Names) == 0 && len(i.Unreadable) == 0
}

// origins are the snapshots that the instance's data comes from: one, or none.
func (i *Instance) origins() []kurabe.SnapshotID {
	var out []kurabe.SnapshotID
	if i.Spec != nil && i.Spec.Origin != nil {
		out = append(out, i.Spec.Origin.Snapshot)
	}
	for _, a := range i.Assignments {
		if o := a.Value.Origin; o != nil && !slices.Contains(out, o.Snapshot) {
			out = append(out, o.Snapshot)
		}
	}
	return out
}

// sources are the instances that it is a read replica of, or was created as one of.
func (i *Instance) sources() []kurabe.InstanceID {
	var out []kurabe.InstanceID
	if i.Spec != nil && i.Spec.Source != "" {
		out = append(out, i.Spec.Source)
	}
	if i.Status != nil && i.Status.Source != "" && !slices.Contains(out, i.Status.Source) {
		out = append(out, i.Status.Source)
	}
	return out
}

// nameRecord says whose a name is.
type nameRecord[ID ~string] struct {
	ID ID `json:"id"`
}

// CreateInstance writes a new spec and takes its name. Of two creates of one
// name exactly one commits.
func (c *Change) CreateInstance(s kurabe.InstanceSpec) *Change {
	key := instanceSpecKey(s.ID)
	return c.TakeName(kurabe.NameKey(s.Name, s.Cluster), s.ID).Require(key, 0).put(key, s, string(s.ID))
}

// PutInstance writes a spec that was read at specMod.
func (c *Change) PutInstance(s kurabe.InstanceSpec, specMod int64) *Change {
	return c.RequireInstance(s.ID, specMod).put(instanceSpecKey(s.ID), s, string(s.ID))
}

// RequireInstance demands that the spec is the one read at specMod.
func (c *Change) RequireInstance(id kurabe.InstanceID, specMod int64) *Change {
	return c.Require(instanceSpecKey(id), specMod)
}

// RequireInstancesUnwritten demands that no spec was written after revision: a
// check over all instances (a quota, a group in use) still holds at commit.
func (c *Change) RequireInstancesUnwritten(revision int64) *Change {
	return c.RequireUnwritten(instanceSpecs, revision)
}

// TakeName reserves a name, as kurabe.NameKey makes it, for an instance; the commit conflicts when it is
// taken, by that instance too.
func (c *Change) TakeName(name string, id kurabe.InstanceID) *Change {
	return takeName(c, instanceNameKey(name), name, id)
}

// takeName reserves a name of any kind; it is no method because methods take no
// type parameters.
func takeName[ID ~string](c *Change, key, name string, id ID) *Change {
	return c.Require(key, 0).put(key, nameRecord[ID]{ID: id}, name)
}

// ReleaseName gives a name back that was taken at mod. The comparison keeps one
// instance from giving away another's name.
func (c *Change) ReleaseName(name string, mod int64) *Change {
	key := instanceNameKey(name)
	return c.Require(key, mod).Delete(key)
}

// PutStatus writes a status that was read at statusMod, 0 for the first one.
func (c *Change) PutStatus(s kurabe.InstanceStatus, statusMod int64) *Change {
	key := instanceStatusKey(s.ID)
	return c.Require(key, statusMod).put(key, s, string(s.ID))
}

// DeleteInstance removes every record of an instance but its reports, which
// are their agents' to drop, and gives its names back. It conflicts when one of
// them changed since i was read, or a group was made of it.
func (c *Change) DeleteInstance(i *Instance) *Change {
	if i.Spec != nil {
		c.RequireInstance(i.ID, i.SpecMod).Delete(instanceSpecKey(i.ID))
	}
	for _, name := range slices.Sorted(maps.Keys(i.Names)) {
		c.ReleaseName(name, i.Names[name])
	}
	if i.Status != nil {
		key := instanceStatusKey(i.ID)
		c.Require(key, i.StatusMod).Delete(key)
	}
	c.RequireGroup(i.ID, i.GroupMod)
	if i.Group != nil {
		c.Delete(groupKey(i.ID))
	}
	for _, o := range i.Tasks {
		c.DeleteAssignment(o.Value.Host, o.Value.Envelope().Ref, o.ModRevision)
	}
	for _, a := range i.Assignments {
		c.DeleteAssignment(a.Value.Host, a.Value.Instance.Ref(), a.ModRevision)
	}
	return c
}
