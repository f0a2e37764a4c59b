package plan

import (
	"fmt"

	"kurabe"
	"kurabe/internal/event"
)

// forceRecovery obeys an operator who accepts the loss of commits that only the primary has, and
// says whether it decides. Commits do not wait for a standby in that state, so a new primary in
// the record does not fence the old one: first the old one must have ended, with the order to stay
// so.
func (d *draft) forceRecovery() bool {
	d.acceptRecovery()
	g := d.group
	if g.ForcedPrimary == "" {
		return false
	}
	if why := d.whyNotPrimary(g.ForcedPrimary); why != "" {
		d.because("the recovery is called off: " + why)
		d.tell(event.LossNotTaken.With(why))
		g.ForcedPrimary = ""
		return false
	}
	a, r := d.assigned(g.Primary), d.reported(g.Primary)
	rests := a != nil && a.Role != nil && a.Role.Duty == kurabe.DutyFenced && r != nil && r.Generation == a.Generation && r.Done && !r.Running
	m, _ := g.Member(g.Primary)
	if !rests && !d.w.RemovedHosts[m.Host] { // whose end a person vouches for
		d.because(fmt.Sprintf("%s is to write once it is known that %s has ended: an operator has accepted what is lost", g.ForcedPrimary, g.Primary))
		return true
	}
	d.because(fmt.Sprintf("%s has ended; %s writes, and what it lacks is lost", g.Primary, g.ForcedPrimary))
	d.tellBegun(g.ForcedPrimary, "")
	g.Epoch++
	g.Primary, g.ForcedPrimary = g.ForcedPrimary, ""
	d.setSyncSet(nil)
	g.RequireStandby = false     // the one that is left serves, until another one has every commit
	g.UnprotectedSince = d.w.Now // what was lost before is no risk any more
	return true
}

// acceptRecovery takes the operator's order once, if the situation is still the one that the
// operator saw.
func (d *draft) acceptRecovery() {
	wish, g := d.w.Spec.Recovery, d.group
	if wish == nil || wish.Seq <= d.status.RecoverySeq {
		return
	}
	d.status.RecoverySeq = wish.Seq
	why := d.whyNotPrimary(wish.To)
	switch {
	case wish.Epoch != g.Epoch:
		why = fmt.Sprintf("it was accepted in epoch %d, and this is %d", wish.Epoch, g.Epoch)
	case len(g.SyncSet) > 0 && d.successor() != "":
		why = "a standby has every commit"
	case d.primaryState().leading:
		why = "the server that has every commit runs again"
	}
	if why != "" {
		d.because("no recovery: " + why)
		d.tell(event.LossNotTaken.With(why))
		return
	}
	g.ForcedPrimary, g.HandoverTo = wish.To, ""
	d.acting(false, kurabe.StateRebooting, "a recovery with a loss, to "+string(wish.To))
	d.tell(event.LossAccepted.With(d.zoneOf(wish.To), g.UnprotectedSince.UTC().Format("2006-01-02 15:04:05.000 UTC")))
}

// whyNotPrimary says why a member cannot become the primary, "" when it can.
func (d *draft) whyNotPrimary(id kurabe.InstanceID) string {
	_, known := d.group.Member(id)
	r := d.heardReport(id)
	switch {
	case !known, id == d.group.Primary:
		return string(id) + " is no standby"
	case r == nil || r.Role == nil || !r.Running || r.Role.Unresponsive:
		return string(id) + " does not run, or does not answer"
	case d.rebuilds(id):
		return string(id) + " is being made anew"
	case r.Role.Writing:
		return string(id) + " has not ended as a writer"
	}
	return ""
}
