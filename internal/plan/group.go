package plan

import (
	"slices"
	"strconv"

	"kurabe"
	"kurabe/internal/event"
)

// planGroup decides the members of the group, its primary and its sync set. It follows the plan of
// the content, and ends with the assignment of each member.
func (d *draft) planGroup() {
	d.noteConversion()
	if d.group == nil && !d.beginGroup() {
		// A failover that was asked for before is not one of what may come.
		d.status.FailoverSeq, d.status.FailingOver, d.status.Activating, d.status.FailoverUndone = d.w.Spec.FailoverSeq, false, false, false
		d.status.FailedRollout, d.status.StandbysOutOfDisk = kurabe.FailedRollout{}, nil
		d.dropSwitch()
		return
	}
	d.noteRefusal()
	before := d.group.Primary
	d.findStoppedStandbys()
	if !d.switchOver() {
		d.planMembers()
	}
	d.tellBlocked()
	if d.group.Primary != before {
		d.noteDiskLeft(before)
		d.adoptPrimary()
	}
	d.completeFailover()
	d.tellPromoted()
	d.tellGivenUp()
	d.tellWaits()
	d.tellRoom()
	d.endGroup()
	d.orderMembers()
	d.tellGroup()
}

// planMembers decides who belongs to the group, and who of them is the primary.
func (d *draft) planMembers() {
	d.noteSyncPolicy()
	d.replaceStandby()
	d.addStandby()
	d.removeStandbys()
	if d.next.Goal == kurabe.GoalRunning && !d.forceRecovery() {
		d.failOver()
		d.failOverInOrder()
		d.stopFullStandbys()
		d.shrinkSyncSet()
		d.narrowSyncSet()
		d.growSyncSet()
		d.noteSyncPolicy()
	}
}

// noteConversion notes that the user asked for another number of zones.
func (d *draft) noteConversion() {
	wants, has := d.status.Applied.MultiAZ, d.group != nil && len(d.group.Members) > 1
	switch {
	case d.status.Move != "": // nobody wants that
	case !wants && d.group == nil:
		d.status.Converting = false // or the user has changed his mind
	case d.status.Converting || wants == has:
	case wants:
		d.status.Converting = true
		if !d.status.AvailableAt.IsZero() {
			d.tell(event.ToMultiAZBegun)
		}
	default:
		d.status.Converting = true
		d.tell(event.ToSingleAZBegun)
	}
}

// beginGroup makes the record once the first server serves, with a log to follow: a second
// one is made of it, or a read replica.
func (d *draft) beginGroup() bool {
	r := d.w.Report
	if !d.status.Applied.MultiAZ && len(d.w.Replicas) == 0 || !d.had || r == nil || !r.Serving || !r.Done || d.next.Goal != kurabe.GoalRunning ||
		r.Generation != d.w.Assignment.Generation || d.w.Assignment.Goal != kurabe.GoalRunning ||
		d.w.Spec.Engine.RestartsForLog() && !hasBinlog(*d.w.Assignment) {
		return false
	}
	id := d.w.Spec.ID
	d.group = &kurabe.Group{Instance: id, Epoch: 1, Primary: id, LastNumber: 1, UnprotectedSince: d.w.Now,
		Members: []kurabe.Member{{ID: id, Host: d.next.Host, Zone: d.status.Zone, ListensAt: d.next.ListensAt}}}
	if d.status.Applied.MultiAZ {
		d.because("it is to have a standby in another zone")
	} else {
		d.because("it is to have read replicas")
	}
	return true
}

// ownAddress is a free one that no other member has, "" when there is none.
func (d *draft) ownAddress(h kurabe.HostReport) string {
	taken := map[string]bool{d.next.Address: true, d.next.ReaderAddress: true}
	for address := range d.w.Addresses {
		taken[address] = true
	}
	for _, m := range d.group.Members {
		taken[m.ListensAt] = true
	}
	address, _ := kurabe.FreeAddress(h.AddressPool, taken, "")
	return address
}

// removeStandbys removes the standbys when a single server is to remain: from the sync set here,
// then their servers, then their records.
func (d *draft) removeStandbys() {
	g, all := d.group, !d.status.Applied.MultiAZ
	if all {
		d.setSyncSet(nil)
		g.HandoverTo, g.ForcedPrimary = "", ""
	}
	g.Members = slices.DeleteFunc(g.Members, func(m kurabe.Member) bool {
		a, r := d.assigned(m.ID), d.reported(m.ID)
		gone := (all || m.Leaving) && m.ID != g.Primary && (a == nil || a.Goal == kurabe.GoalAbsent && r != nil && r.Absent && r.Generation == a.Generation)
		if gone {
			d.because("nothing is left of " + string(m.ID))
			d.result.MembersGone = append(d.result.MembersGone, m.ID)
		}
		return gone
	})
}

// endGroup removes the record of the group when a single server remains that holds the endpoint
// itself, and nobody follows it.
func (d *draft) endGroup() {
	g := d.group
	alone := !d.status.Applied.MultiAZ && len(g.Members) == 1
	if alone && d.status.Converting {
		d.status.Converting = false
		d.tell(event.ToSingleAZDone)
	}
	if alone && g.Members[0].ListensAt == "" && len(d.w.Replicas) == 0 && !d.status.Promoting && d.hasNoFollowers() {
		d.result.GroupGone = d.w.Group != nil
		d.next.Role, d.group = nil, nil
	}
}

// hasNoFollowers says whether the primary has removed its replication slots or accounts of
// followers. A server without a group would keep them for ever.
func (d *draft) hasNoFollowers() bool {
	a, r := d.assigned(d.group.Primary), d.reported(d.group.Primary)
	return a == nil || a.Role == nil || len(a.Role.Followers) == 0 && r != nil && r.Generation == a.Generation && r.Role != nil && r.Role.Epoch == a.Role.Epoch && r.Done
}

// tellGivenUp announces what a former primary had committed and nobody else had.
func (d *draft) tellGivenUp() {
	for n, m := range d.group.Members {
		r := d.reported(m.ID)
		if r == nil || r.Role == nil || r.Role.Discarded.Seq <= m.DiscardedSeq {
			continue
		}
		d.group.Members[n].DiscardedSeq = r.Role.Discarded.Seq
		number := strconv.FormatInt(r.Role.Discarded.Transactions, 10)
		if r.Role.Discarded.Transactions == kurabe.DiscardedUnknown {
			number = "an unknown number of"
		}
		d.tell(event.CommitsGivenUp.With(m.Zone, number, upkeep[d.w.Spec.Engine], unwaited[d.w.Spec.Engine]))
	}
}

// upkeep and unwaited are what is true of one engine only: what else is counted, and what a
// client can do about the wait.
var (
	upkeep   = map[kurabe.EngineName]string{kurabe.Postgres: " (the server's own upkeep counts among them)"}
	unwaited = map[kurabe.EngineName]string{kurabe.Postgres: ", had cancelled that wait, or had asked not to wait (synchronous_commit)"}
)

// tellGroup fills in what users see.
func (d *draft) tellGroup() {
	d.status.SecondZone = ""
	if d.group == nil {
		d.status.Epoch, d.status.SeenWaits = 0, nil
		return
	}
	d.status.Epoch = d.group.Epoch
	if m, ok := d.group.Member(d.group.Primary); ok {
		d.status.Zone, d.status.Host = m.Zone, m.Host
	}
	if len(d.group.SyncSet) > 0 {
		m, _ := d.group.Member(d.group.SyncSet[0])
		d.status.SecondZone = m.Zone
	}
	d.tellServers()
	d.tellWaiting()
}
