package plan

import (
	"fmt"
	"slices"

	"kurabe"
)

// noRoom says why a member could not serve clients that write, "" when it could: its host's
// disk is full, or it takes all of the storage that it may. What it lacks to be a writer it
// does not lack to be a standby, until it ends by itself; then it is started until there is room.
func (d *draft) noRoom(id kurabe.InstanceID) string {
	r := d.heard(id)
	if r == nil {
		return ""
	}
	wanted, limit := d.storage()
	switch f := r.Failure; {
	case r.LacksRoom() != "":
		return r.LacksRoom()
	case f != nil && f.Kind == kurabe.FailureStorage:
		return f.Message
	case wanted.StorageGiB > 0 && r.UsedBytes*100 >= limit*storageFull && r.UsedBytes > 0:
		return "it takes " + used(r, limit)
	}
	return ""
}

// tellRoom tells of standbys that have no room to write, and when they have. Where the writer
// has none either, that is told, and the instance is stopped.
func (d *draft) tellRoom() {
	if d.next.Goal != kurabe.GoalRunning || d.noRoom(d.group.Writer) != "" {
		return
	}
	before := d.status.StandbysOutOfDisk
	d.status.StandbysOutOfDisk = nil
	for _, m := range d.standbys() {
		why, known := d.noRoom(m.ID), slices.Contains(before, m.ID)
		if d.heard(m.ID) == nil && known {
			why = "its host is not heard"
		}
		switch {
		case why != "":
			d.status.StandbysOutOfDisk = append(d.status.StandbysOutOfDisk, m.ID)
			d.because(fmt.Sprintf("%s has no room to write: %s", m.ID, why))
			if !known {
				d.event("KURABE-EVENT-0041", fmt.Sprintf("The standby in zone %s has no room to write, so no failover that is asked for goes to it: %s", m.Zone, why), "low storage")
			}
		case known:
			d.event("KURABE-EVENT-0042", fmt.Sprintf("The standby in zone %s has room to write again", m.Zone), "notification")
		}
	}
}
