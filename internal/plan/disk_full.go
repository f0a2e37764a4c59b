package plan

import (
	"fmt"
	"slices"
	"time"

	"kurabe"
)

// leaveTime is how long a writer may go on, on a disk that is nearly full, until it has handed
// over to a server elsewhere: then it is stopped as one is that has nobody. leftAgain is how long
// a disk that was left is no place to go back to, whatever room it has: two that fill in turn
// would have clients find another server each few seconds.
const (
	leaveTime = 15 * time.Second
	leftAgain = time.Minute
)

// leavesDisk says whether the writer's disk, which is nearly full, can be left: another host has a
// server with every commit and with room, which takes its place, rather than that nobody serves.
func (d *draft) leavesDisk() bool {
	h, g := &d.status.Storage, d.group
	if g == nil || g.SwitchoverTo != "" || g.ForcedPrimary != "" || !slices.ContainsFunc(g.SyncSet, d.refuge) {
		return false
	}
	if h.HandOverBy.IsZero() {
		h.HandOverBy = d.w.Now.Add(leaveTime)
	}
	d.within(&h.HandOverBy, leaveTime)
	if !d.w.Now.Before(h.HandOverBy) {
		return false
	}
	d.lookAgain(h.HandOverBy)
	d.handOverForDisk = true
	return true
}

// refuge says whether a member can take the place of a writer that is to leave its disk.
func (d *draft) refuge(id kurabe.InstanceID) bool {
	m, _ := d.group.Member(id)
	h := d.status.Storage
	left := slices.Contains(h.HandedOverFrom, id) && d.w.Now.Before(h.HandedOverAt.Add(leftAgain))
	return d.elsewhere(m) && !m.Leaving && d.able(id) && d.noRoom(id) == "" && !left
}

// noteLeft remembers whose disk was left.
func (d *draft) noteLeft(from kurabe.InstanceID) {
	h := &d.status.Storage
	if h.HandOverBy.IsZero() {
		return
	}
	left := []kurabe.InstanceID{from}
	if d.w.Now.Before(h.HandedOverAt.Add(leftAgain)) {
		left = append(left, h.HandedOverFrom...)
	}
	h.HandedOverFrom, h.HandedOverAt, h.HandOverBy = left, d.w.Now, time.Time{}
	d.handOverForDisk = false
}

// stopsForRoom says whether the instance is stopped because there is no room for it, or is
// started again after that: nobody has asked for either, so each of its servers keeps what it
// runs with.
func (d *draft) stopsForRoom() bool {
	before := d.w.Status
	if d.group == nil || before == nil || d.w.Spec.Power.Stopped && !d.status.AutoStarted || !before.StoppedAt.IsZero() && !before.AutoStarted {
		return false
	}
	if d.next.Goal == kurabe.GoalStopped {
		return true
	}
	return d.w.Assignment.Goal == kurabe.GoalStopped && before.StorageAlarm >= storageFull
}

// goesOn says whether what an instance runs with is to be kept in order: it runs, or is stopped
// by nobody's wish.
func (d *draft) goesOn() bool { return d.next.Goal == kurabe.GoalRunning || d.stoppedForDisk }

// ran says whether a server was to run, or would have been if there had been room for it.
func (d *draft) ran(old kurabe.Assignment) bool {
	return old.Goal == kurabe.GoalRunning || d.wasStopped(old)
}

// wasStopped says whether a server was stopped because there was no room for it.
func (d *draft) wasStopped(old kurabe.Assignment) bool {
	w := d.assigned(d.group.Primary)
	return old.Goal == kurabe.GoalStopped && (d.stoppedForDisk || w != nil && w.Goal == kurabe.GoalRunning)
}

// rest finds the standbys that stay stopped because their disk is nearly full.
func (d *draft) rest() {
	d.fullStandbys = map[kurabe.InstanceID]bool{}
	for _, m := range d.standbys() {
		a, r := d.assigned(m.ID), d.heard(m.ID)
		if a != nil && d.wasStopped(*a) && (r == nil || r.Generation != a.Generation || !r.Done || r.LacksRoom() != "") {
			d.fullStandbys[m.ID] = true
			d.because(fmt.Sprintf("%s stays stopped until its host's disk has room", m.ID))
		}
	}
}

// stopFull has the standbys end whose disk is nearly full, before they harm their neighbours.
// On the writer's own host they end with that. Commits go on with the others, or as the policy
// has it when nobody is left; one that may be the only one with a commit keeps the right to take
// over.
func (d *draft) stopFull() {
	g, s := d.group, d.writerState()
	if d.leavingMembers == nil {
		d.leavingMembers = map[kurabe.InstanceID]bool{}
	}
	if g.HandoverTo != "" || g.HandoverCandidate != "" || g.Electing || !d.status.Applied.MultiAZ {
		return
	}
	if !s.writing {
		d.keepLeaves()
		return
	}
	for _, m := range d.standbys() {
		r := d.heard(m.ID)
		if d.fullStandbys[m.ID] || r == nil || r.LacksRoom() == "" || !d.elsewhere(m) || d.rebuilds(m.ID) || r.Running && (r.Role == nil || r.Role.Writing || r.Role.Epoch != g.Epoch) {
			continue
		}
		others := func(id kurabe.InstanceID) bool {
			return id != m.ID && !d.fullStandbys[id] && !d.leavingMembers[id] && !slices.Contains(s.report.Role.SilentFollowers, id)
		}
		switch {
		case g.InSyncSet(m.ID) && slices.ContainsFunc(g.SyncSet, others):
			d.because(fmt.Sprintf("%s stops once commits wait for others: %s", m.ID, r.LacksRoom()))
			d.leavingMembers[m.ID] = true
			continue
		case g.InSyncSet(m.ID) && !g.RequireStandby:
			d.setSync(nil)
		}
		d.stopStandby(m, r.LacksRoom())
	}
}

// keepLeaves has the order to wait for others stand while the writer obeys it, which is no moment
// to give one: without it the order would be taken back, and given again, for ever.
func (d *draft) keepLeaves() {
	a := d.assigned(d.group.Primary)
	if a == nil || a.Role == nil || a.Role.Epoch != d.group.Epoch || len(a.Role.WaitFor) == 0 {
		return
	}
	for _, m := range d.standbys() {
		if r := d.heard(m.ID); d.group.InSyncSet(m.ID) && r != nil && r.LacksRoom() != "" && d.elsewhere(m) && !slices.Contains(a.Role.WaitFor, m.ID) {
			d.leavingMembers[m.ID] = true
		}
	}
}

func (d *draft) stopStandby(m kurabe.Member, why string) {
	d.fullStandbys[m.ID] = true
	d.because(fmt.Sprintf("%s is stopped: %s", m.ID, why))
	commits := "Commits go on with the other standby"
	switch {
	case d.group.InSyncSet(m.ID) || d.group.RequireStandby && len(d.group.SyncSet) == 0:
		commits = "Commits wait until it is back"
	case len(d.group.SyncSet) == 0:
		commits = "Commits go on without it: until it is back, what is written would be lost with the writer"
	}
	d.event("KURABE-EVENT-0045", fmt.Sprintf("The standby in zone %s is stopped: %s. %s. It is started again when there is room", m.Zone, why, commits), "low storage")
}

// tellRests adds to a DB instance that serves which standbys do not run, and why.
func (d *draft) tellRests() {
	if d.group == nil || d.next.Goal != kurabe.GoalRunning || d.status.Reason != "" {
		return
	}
	for _, m := range d.group.Members {
		if d.fullStandbys[m.ID] {
			d.status.Reason = fmt.Sprintf("The standby in zone %s is stopped: the disk of its host is nearly full. It is started again when there is room", m.Zone)
		}
	}
}

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
	if d.next.Goal != kurabe.GoalRunning || d.noRoom(d.group.Primary) != "" {
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
