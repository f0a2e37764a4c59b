package plan

import (
	"fmt"
	"slices"
	"time"

	"kurabe"
	"kurabe/internal/event"
)

// leaveTime is how long a primary may go on, on a disk that is nearly full, until it has handed
// over to a server elsewhere: then it is stopped as one is that has nobody. leftAgain is how long
// a disk that was left is no place to go back to, whatever room it has: two that fill in turn
// would have clients find another server each few seconds.
const (
	leaveTime = 15 * time.Second
	leftAgain = time.Minute
)

// mayLeaveFullDisk says whether the primary may hand over because its disk is nearly full: another
// host has a server with every commit and with free space. The alternative is that the instance
// stops.
func (d *draft) mayLeaveFullDisk() bool {
	h, g := &d.status.Storage, d.group
	if g == nil || g.SwitchoverTo != "" || g.ForcedPrimary != "" || !slices.ContainsFunc(g.SyncSet, d.canReplaceFullPrimary) {
		return false
	}
	if h.HandOverBy.IsZero() {
		h.HandOverBy = d.w.Now.Add(leaveTime)
	}
	d.capDeadline(&h.HandOverBy, leaveTime)
	if !d.w.Now.Before(h.HandOverBy) {
		return false
	}
	d.lookAgain(h.HandOverBy)
	d.handOverForDisk = true
	return true
}

// canReplaceFullPrimary says whether a member can take over from a primary whose disk is nearly
// full.
func (d *draft) canReplaceFullPrimary(id kurabe.InstanceID) bool {
	m, _ := d.group.Member(id)
	h := d.status.Storage
	left := slices.Contains(h.HandedOverFrom, id) && d.w.Now.Before(h.HandedOverAt.Add(leftAgain))
	return d.onOtherHost(m) && !m.Leaving && d.isLiveFollower(id) && d.whyNoRoom(id) == "" && !left
}

// noteDiskLeft remembers whose disk was left.
func (d *draft) noteDiskLeft(from kurabe.InstanceID) {
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

// isStoppedForDisk says whether the instance is stopped because there is no room for it, or is
// started again after that: nobody has asked for either, so each of its servers keeps what it
// runs with.
func (d *draft) isStoppedForDisk() bool {
	before := d.w.Status
	if d.group == nil || before == nil || d.w.Spec.Power.Stopped && !d.status.AutoStarted || !before.StoppedAt.IsZero() && !before.AutoStarted {
		return false
	}
	if d.next.Goal == kurabe.GoalStopped {
		return true
	}
	return d.w.Assignment.Goal == kurabe.GoalStopped && before.StorageAlarm >= storageFull
}

// isMaintained says whether the plan keeps the instance's content up to date: it runs, or it
// stopped without the user's wish.
func (d *draft) isMaintained() bool { return d.next.Goal == kurabe.GoalRunning || d.stoppedForDisk }

// wasMeantToRun says whether a server was ordered to run, or would have been with enough disk
// space.
func (d *draft) wasMeantToRun(old kurabe.Assignment) bool {
	return old.Goal == kurabe.GoalRunning || d.wasStoppedForDisk(old)
}

// wasStoppedForDisk says whether a server was stopped for lack of disk space.
func (d *draft) wasStoppedForDisk(old kurabe.Assignment) bool {
	w := d.assigned(d.group.Primary)
	return old.Goal == kurabe.GoalStopped && (d.stoppedForDisk || w != nil && w.Goal == kurabe.GoalRunning)
}

// findStoppedStandbys finds the standbys that stay stopped because their disk is nearly full.
func (d *draft) findStoppedStandbys() {
	d.fullStandbys = map[kurabe.InstanceID]bool{}
	for _, m := range d.standbys() {
		a, r := d.assigned(m.ID), d.heardReport(m.ID)
		if a != nil && d.wasStoppedForDisk(*a) && (r == nil || r.Generation != a.Generation || !r.Done || r.LacksRoom() != "") {
			d.fullStandbys[m.ID] = true
			d.because(fmt.Sprintf("%s stays stopped until its host's disk has room", m.ID))
		}
	}
}

// stopFullStandbys stops the standbys whose disk is nearly full, before they harm the other
// instances of their host. Standbys on the primary's own host stop with the primary. Commits wait
// for the remaining standbys, or continue as the sync policy says when none is left. A standby
// that may be the only one with a commit stays in the sync set.
func (d *draft) stopFullStandbys() {
	g, s := d.group, d.primaryState()
	if d.leavingMembers == nil {
		d.leavingMembers = map[kurabe.InstanceID]bool{}
	}
	if g.HandoverTo != "" || g.HandoverCandidate != "" || g.Electing || !d.status.Applied.MultiAZ {
		return
	}
	if !s.writing {
		d.keepPendingLeaves()
		return
	}
	for _, m := range d.standbys() {
		r := d.heardReport(m.ID)
		if d.fullStandbys[m.ID] || r == nil || r.LacksRoom() == "" || !d.onOtherHost(m) || d.rebuilds(m.ID) || r.Running && (r.Role == nil || r.Role.Writing || r.Role.Epoch != g.Epoch) {
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
			d.setSyncSet(nil)
		}
		d.stopStandby(m, r.LacksRoom())
	}
}

// keepPendingLeaves keeps the order to wait for other standbys while the primary carries it out.
// Otherwise the order would be withdrawn and given again for ever.
func (d *draft) keepPendingLeaves() {
	a := d.assigned(d.group.Primary)
	if a == nil || a.Role == nil || a.Role.Epoch != d.group.Epoch || len(a.Role.WaitFor) == 0 {
		return
	}
	for _, m := range d.standbys() {
		if r := d.heardReport(m.ID); d.group.InSyncSet(m.ID) && r != nil && r.LacksRoom() != "" && d.onOtherHost(m) && !slices.Contains(a.Role.WaitFor, m.ID) {
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
	d.tell(event.StandbyStopped.With(m.Zone, why, commits))
}

// tellStoppedStandbys adds to the status of a running instance which standbys do not run, and why.
func (d *draft) tellStoppedStandbys() {
	if d.group == nil || d.next.Goal != kurabe.GoalRunning || d.status.Reason != "" {
		return
	}
	for _, m := range d.group.Members {
		if d.fullStandbys[m.ID] {
			d.status.Reason = fmt.Sprintf("The standby in zone %s is stopped: the disk of its host is nearly full. It is started again when there is room", m.Zone)
		}
	}
}

// whyNoRoom says why a member could not serve writing clients, "" when it could: its host's disk
// is full, or it has used all of its allocated storage. Such a server can still be a standby until
// it ends by itself; then it is started again once there is space.
func (d *draft) whyNoRoom(id kurabe.InstanceID) string {
	r := d.heardReport(id)
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

// tellRoom writes the events of standbys that lack the disk space to take over, and that have it
// again. A primary that lacks it is stopped, with an event of its own.
func (d *draft) tellRoom() {
	if d.next.Goal != kurabe.GoalRunning || d.whyNoRoom(d.group.Primary) != "" {
		return
	}
	before := d.status.StandbysOutOfDisk
	d.status.StandbysOutOfDisk = nil
	for _, m := range d.standbys() {
		why, known := d.whyNoRoom(m.ID), slices.Contains(before, m.ID)
		if d.heardReport(m.ID) == nil && known {
			why = "its host is not heard"
		}
		switch {
		case why != "":
			d.status.StandbysOutOfDisk = append(d.status.StandbysOutOfDisk, m.ID)
			d.because(fmt.Sprintf("%s has no room to write: %s", m.ID, why))
			if !known {
				d.tell(event.StandbyNoRoom.With(m.Zone, why))
			}
		case known:
			d.tell(event.StandbyHasRoom.With(m.Zone))
		}
	}
}
