package plan

import (
	"fmt"
	"slices"
	"time"

	"kurabe"
	"kurabe/internal/event"
)

// shrinkSyncSet lets commits continue alone when no member of the sync set answers. The record
// says so before the database does. It changes nothing while the primary cannot be asked.
func (d *draft) shrinkSyncSet() {
	s, g := d.primaryState(), d.group
	if g.Electing || s.lost || s.report == nil || s.report.Role == nil || s.report.Role.Epoch != g.Epoch || !s.report.Running || s.report.Role.Unresponsive {
		return
	}
	if a := d.assigned(g.Primary); a != nil && s.report.Boot < a.Boot && slices.ContainsFunc(g.SyncSet, d.isLiveFollower) {
		return // it stops for a restart, and hears nobody because of that; who may have to take over stays
	}
	answers := func(id kurabe.InstanceID) bool { return !slices.Contains(s.report.Role.SilentFollowers, id) }
	if len(g.SyncSet) == 0 || slices.ContainsFunc(g.SyncSet, answers) {
		return
	}
	if s.report.Role.CutOff {
		// If its host hears nobody, it would never know that it may go on, and nobody could take
		// over: it is told so once it hears, or its lease ends.
		d.because(fmt.Sprintf("%v do not answer, and it is not known yet whether the writer's host hears anybody", s.report.Role.SilentFollowers))
		return
	}
	if g.RequireStandby {
		d.shrinkWhileBlocked(s)
		return
	}
	d.because(fmt.Sprintf("commits go on without %v, which do not answer", s.report.Role.SilentFollowers))
	d.tell(event.StandbyLost)
	d.setSyncSet(nil)
}

// narrowSyncSet removes from the sync set the standbys that commits do not wait for any more, once
// one of the remaining has every earlier acknowledged commit. Until then a removed one might be
// the only one that has it.
func (d *draft) narrowSyncSet() {
	g := d.group
	asked, sure := d.surelyWaitsFor()
	if !sure || len(asked) == 0 || len(asked) >= len(g.SyncSet) || slices.ContainsFunc(asked, func(id kurabe.InstanceID) bool { return !g.InSyncSet(id) }) {
		return
	}
	d.because(fmt.Sprintf("commits wait for %v, of whom one has all that is written", asked))
	d.setSyncSet(asked)
}

// growSyncSet adds to an empty sync set the standbys that the database already waits for, once one
// of them has every earlier commit. Further standbys are recorded here before the database may
// count their answers, since they may then be the only ones that have a commit.
func (d *draft) growSyncSet() {
	g, s := d.group, d.primaryState()
	if !s.writing || !d.status.Applied.MultiAZ || g.HandoverCandidate != "" || g.HandoverTo != "" {
		return
	}
	if len(g.SyncSet) > 0 {
		d.widenSyncSet(s)
		return
	}
	asked, sure := d.surelyWaitsFor()
	if !sure || len(asked) == 0 || slices.ContainsFunc(asked, func(id kurabe.InstanceID) bool { return !d.mayJoinSyncSet(id, s) }) {
		return
	}
	d.because(fmt.Sprintf("commits wait for %v, of whom one has all that is written", asked))
	d.setSyncSet(asked)
	if d.status.Converting {
		d.status.Converting = false
		if !d.status.AvailableAt.IsZero() {
			d.tell(event.ToMultiAZDone)
		}
		return
	}
	d.tell(event.StandbyBack)
}

// widenSyncSet adds standbys that follow so closely that commits wait no longer with them.
func (d *draft) widenSyncSet(s primaryState) {
	for _, m := range d.group.Members {
		f := d.heardReport(m.ID)
		follows := f != nil && f.Role != nil && f.Role.Following && f.Role.Epoch == d.group.Epoch
		if m.ID != d.group.Primary && !d.group.InSyncSet(m.ID) && follows && slices.Contains(s.report.Role.NearlyCaughtUp, m.ID) && d.mayJoinSyncSet(m.ID, s) {
			d.because(fmt.Sprintf("%s follows closely: its answer counts, too", m.ID))
			d.setSyncSet(slices.Sorted(slices.Values(append(slices.Clone(d.group.SyncSet), m.ID))))
		}
	}
}

// mayJoinSyncSet says whether a member may be in the sync set.
func (d *draft) mayJoinSyncSet(id kurabe.InstanceID, s primaryState) bool {
	m, known := d.group.Member(id)
	if !known || m.Leaving || d.leavingMembers[id] || d.fullStandbys[id] || d.isBeingRebuilt(id) || slices.Contains(s.report.Role.SilentFollowers, id) {
		return false
	}
	return s.report.Role.Leased || !d.onOtherHost(m) // else it could take the place of a primary that nobody ends
}

// surelyWaitsFor is the set of standbys that commits wait for, when the database and its order
// agree on it and one of them has every earlier commit.
func (d *draft) surelyWaitsFor() ([]kurabe.InstanceID, bool) {
	s, a := d.primaryState(), d.assigned(d.group.Primary)
	if !s.writing || a.Role == nil {
		return nil, false
	}
	role := s.report.Role
	asked := slices.Sorted(slices.Values(a.Role.WaitFor))
	one := slices.ContainsFunc(asked, func(id kurabe.InstanceID) bool {
		return slices.Contains(role.CaughtUp, id) && !slices.Contains(role.SilentFollowers, id)
	})
	return asked, one && slices.Equal(asked, slices.Sorted(slices.Values(role.WaitsFor)))
}

// setSyncSet replaces the sync set, and notes since when the primary is unprotected.
func (d *draft) setSyncSet(sync []kurabe.InstanceID) {
	g := d.group
	g.SyncSet = sync
	if !g.InSyncSet(g.HandoverCandidate) {
		g.HandoverCandidate = ""
	}
	switch {
	case len(sync) > 0 || len(g.Members) < 2:
		g.UnprotectedSince = time.Time{}
	case g.UnprotectedSince.IsZero():
		g.UnprotectedSince = d.w.Now
	}
}
