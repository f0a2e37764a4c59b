package plan

import (
	"fmt"
	"slices"
	"time"

	"kurabe"
	"kurabe/internal/event"
)

// replaceAfter is how long the host of a standby may not be heard before another standby is
// made elsewhere: a machine that restarts is back sooner, and a copy costs the primary.
const replaceAfter = 5 * time.Minute

// silent says whether nobody hears a host, or ever will.
func (d *draft) silent(id kurabe.HostID) bool { return d.w.RemovedHosts[id] || !d.w.Lost[id].IsZero() }

// heardReport is the report of a member whose host is heard, nil otherwise.
func (d *draft) heardReport(id kurabe.InstanceID) *kurabe.InstanceReport {
	if m, _ := d.group.Member(id); d.silent(m.Host) {
		return nil
	}
	return d.reported(id)
}

// freshTime is how old the newest word of a host may be that is to take over: two beats. One
// that is not lost yet may be frozen, or off, and what it has said of before.
const freshTime = 2 * time.Second

// spokeLately says whether a member's host can be expected to obey. A host that has not spoken
// lately is looked at again in a moment: by then it has spoken, or is lost.
func (d *draft) spokeLately(id kurabe.InstanceID) bool {
	m, _ := d.group.Member(id)
	spoke, speaks := d.w.HeardAt[m.Host]
	if !speaks || d.w.Now.Sub(spoke) <= freshTime {
		return true
	}
	d.lookAgain(d.w.Now.Add(freshTime / 4))
	return false
}

// onOtherHost says whether a member is on another host than the primary.
func (d *draft) onOtherHost(m kurabe.Member) bool {
	w, _ := d.group.Member(d.group.Primary)
	return m.Host != w.Host
}

// confirmedByStandby says whether a standby of the sync set follows the primary now: then the
// primary serves, whoever else does not hear it, and that standby has extended its lease.
func (d *draft) confirmedByStandby() bool {
	return slices.ContainsFunc(d.group.SyncSet, func(id kurabe.InstanceID) bool {
		r := d.heardReport(id)
		return r != nil && r.Role != nil && r.Role.Following && r.Role.Epoch == d.group.Epoch
	})
}

// standbys are the members beside the primary that are to stay.
func (d *draft) standbys() []kurabe.Member {
	return slices.DeleteFunc(slices.Clone(d.group.Members), func(m kurabe.Member) bool { return m.Leaving || m.ID == d.group.Primary })
}

// standbysWanted is the number of standbys that the instance should have.
func (d *draft) standbysWanted() int {
	if d.w.Spec.Cluster {
		return kurabe.ClusterServers - 1
	}
	return 1
}

// addStandby adds a standby where one is missing.
func (d *draft) addStandby() {
	g := d.group
	if !d.status.Applied.MultiAZ || len(d.standbys()) >= d.standbysWanted() || d.next.Goal != kurabe.GoalRunning {
		return
	}
	host, zone, why := d.chooseStandby()
	if why == "" && d.ownAddress(host) == "" {
		why = noAddress(host)
	}
	if why != "" {
		d.because("no standby: " + why)
		d.unplaced = why
		if d.status.SeenFailure != why {
			d.status.SeenFailure = why
			d.tell(event.StandbyHomeless.With(why))
		}
		return
	}
	g.LastNumber++
	m := kurabe.Member{ID: d.w.Spec.ID.Member(g.LastNumber), Host: host.Host, Zone: zone, ListensAt: d.ownAddress(host)}
	g.Members = append(g.Members, m)
	d.because(fmt.Sprintf("a standby %s on host %s, zone %s", m.ID, m.Host, m.Zone))
}

func noAddress(h kurabe.HostReport) string { return "no address is free in " + h.AddressPool }

// zones are those that have a server which is to stay.
func (d *draft) zones() (taken []string) {
	for _, m := range d.group.Members {
		if !m.Leaving && !d.leavingMembers[m.ID] {
			taken = append(taken, m.Zone)
		}
	}
	return taken
}

// chooseStandby takes another zone: of another host if there is one, so that the loss of a
// machine is no loss, and else of the primary's.
func (d *draft) chooseStandby() (host kurabe.HostReport, zone, why string) {
	if d.status.Move != "" {
		return d.chooseMove()
	}
	applied := d.status.Applied
	class, ok := kurabe.FindClass(applied.Class)
	if !ok {
		return host, "", "class " + applied.Class + " is not known"
	}
	p := kurabe.Placement{Engine: d.w.Spec.Engine, Version: applied.EngineVersion, Class: class, Limits: applied.Limits(), Taken: d.zones()}
	primary, _ := d.group.Member(d.group.Primary)
	return p.ChooseStandby(d.hostReport(primary.Host), primary.Zone, d.w.Hosts, d.w.Closed, d.reservedMemory())
}

// reservedMemory is the memory reserved on each host, in bytes, this instance's own servers
// included.
func (d *draft) reservedMemory() map[kurabe.HostID]int64 {
	held := map[kurabe.HostID]int64{}
	for id, bytes := range d.w.Reserved {
		held[id] = bytes
	}
	class, _ := kurabe.FindClass(d.status.Applied.Class)
	for _, m := range d.group.Members {
		held[m.Host] += class.MemoryBytes
	}
	return held
}

// replaceStandby removes a standby whose host is drained, or silent for long, if another one can
// be placed. A standby in the sync set leaves that first.
func (d *draft) replaceStandby() {
	g := d.group
	if !d.status.Applied.MultiAZ || d.next.Goal != kurabe.GoalRunning || g.HandoverTo != "" || g.ForcedPrimary != "" || g.Electing || !d.primaryState().leading {
		return
	}
	for n, m := range g.Members {
		why := d.whyReplaced(m)
		if m.Leaving || m.ID == g.Primary || why == "" {
			continue
		}
		d.leavingMembers = map[kurabe.InstanceID]bool{m.ID: true}
		host, _, none := d.chooseStandby()
		if none == "" && d.ownAddress(host) == "" {
			none = noAddress(host)
		}
		if none != "" {
			d.because(fmt.Sprintf("%s stays although %s: %s", m.ID, why, none))
			d.noteCannotLeave(m.ID, none)
			d.leavingMembers = nil
			continue
		}
		if g.InSyncSet(m.ID) && len(g.SyncSet) > 1 {
			d.because(fmt.Sprintf("%s leaves once another one has every commit: %s", m.ID, why))
			return
		}
		g.Members[n].Leaving = true
		if g.InSyncSet(m.ID) {
			d.setSyncSet(nil)
		}
		d.because(fmt.Sprintf("another standby takes the place of %s: %s", m.ID, why))
		d.tell(event.StandbyAnew.With(why))
		return
	}
}

// whyReplaced says why a standby should be on another host, "" when it should not.
func (d *draft) whyReplaced(m kurabe.Member) string {
	since := d.w.Lost[m.Host]
	switch {
	case d.w.RemovedHosts[m.Host]:
		return fmt.Sprintf("host %s is gone for good", m.Host)
	case !since.IsZero() && !d.w.Now.Before(since.Add(replaceAfter)):
		return fmt.Sprintf("host %s has not been heard since %s", m.Host, since.UTC().Format(time.RFC3339))
	case !since.IsZero():
		d.lookAgain(since.Add(replaceAfter))
	case d.w.Emptied[m.Host] != "" && d.reported(m.ID) != nil:
		return d.w.Emptied[m.Host]
	}
	return ""
}

// leavesDrainedHost says whether the primary is to hand over because its host is drained.
func (d *draft) leavesDrainedHost() bool {
	w, _ := d.group.Member(d.group.Primary)
	to, _ := d.group.Member(d.mostAdvanced())
	return d.w.Emptied[w.Host] != "" && !d.silent(w.Host) && to.ID != "" && d.w.Closed[to.Host] == ""
}
