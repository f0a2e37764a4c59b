package plan

import (
	"fmt"
	"slices"
	"time"

	"kurabe"
	"kurabe/internal/event"
)

// shrink lets commits go on alone when nobody whom they could wait for answers, or the
// writer cannot tell of them any more. The record says so first.
func (d *draft) shrink() {
	s, g := d.writerState(), d.group
	if g.Electing || s.lost || s.report == nil || s.report.Role == nil || s.report.Role.Epoch != g.Epoch || !s.report.Running || s.report.Role.Unresponsive {
		return
	}
	if a := d.assigned(g.Primary); a != nil && s.report.Boot < a.Boot && slices.ContainsFunc(g.SyncSet, d.able) {
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
		d.giveWay(s)
		return
	}
	d.because(fmt.Sprintf("commits go on without %v, which do not answer", s.report.Role.SilentFollowers))
	d.event("KURABE-EVENT-0010", "The standby does not answer. Commits go on without it: until it is back, what is written would be lost with the writer", "failure")
	d.setSync(nil)
}

// narrow takes from Sync whom commits wait for no more, once those that they wait for have
// all that was acknowledged before: until then one of the others may be the only one that has
// it.
func (d *draft) narrow() {
	g := d.group
	asked, sure := d.surelyWaitsFor()
	if !sure || len(asked) == 0 || len(asked) >= len(g.SyncSet) || slices.ContainsFunc(asked, func(id kurabe.InstanceID) bool { return !g.InSyncSet(id) }) {
		return
	}
	d.because(fmt.Sprintf("commits wait for %v, of whom one has all that is written", asked))
	d.setSync(asked)
}

// grow takes into Sync whom the database waits for already, once all that was written before
// it did so has arrived at one of them. Further ones, who may then be the only ones that have
// a commit, are written here before the database may go by their answers.
func (d *draft) grow() {
	g, s := d.group, d.writerState()
	if !s.writing || !d.status.Applied.MultiAZ || g.HandoverCandidate != "" || g.HandoverTo != "" {
		return
	}
	if len(g.SyncSet) > 0 {
		d.widen(s)
		return
	}
	asked, sure := d.surelyWaitsFor()
	if !sure || len(asked) == 0 || slices.ContainsFunc(asked, func(id kurabe.InstanceID) bool { return !d.joins(id, s) }) {
		return
	}
	d.because(fmt.Sprintf("commits wait for %v, of whom one has all that is written", asked))
	d.setSync(asked)
	if d.status.Converting {
		d.status.Converting = false
		if !d.status.AvailableAt.IsZero() {
			d.tell(event.ToMultiAZDone)
		}
		return
	}
	d.event("KURABE-EVENT-0011", "The standby has every commit again", "recovery")
}

// widen adds who is so near that commits lose nothing by waiting for whoever is first.
func (d *draft) widen(s writerState) {
	for _, m := range d.group.Members {
		f := d.heard(m.ID)
		follows := f != nil && f.Role != nil && f.Role.Following && f.Role.Epoch == d.group.Epoch
		if m.ID != d.group.Primary && !d.group.InSyncSet(m.ID) && follows && slices.Contains(s.report.Role.NearlyCaughtUp, m.ID) && d.joins(m.ID, s) {
			d.because(fmt.Sprintf("%s follows closely: its answer counts, too", m.ID))
			d.setSync(slices.Sorted(slices.Values(append(slices.Clone(d.group.SyncSet), m.ID))))
		}
	}
}

// joins says whether a member may be one of Sync.
func (d *draft) joins(id kurabe.InstanceID, s writerState) bool {
	m, known := d.group.Member(id)
	if !known || m.Leaving || d.leavingMembers[id] || d.fullStandbys[id] || d.lost(id) || slices.Contains(s.report.Role.SilentFollowers, id) {
		return false
	}
	return s.report.Role.Leased || !d.elsewhere(m) // else it could take the place of a writer that nobody ends
}

// surelyWaitsFor is whom commits wait for, if the database and the order to it agree on that,
// and one of them has all that was written before.
func (d *draft) surelyWaitsFor() ([]kurabe.InstanceID, bool) {
	s, a := d.writerState(), d.assigned(d.group.Primary)
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

func (d *draft) setSync(sync []kurabe.InstanceID) {
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
