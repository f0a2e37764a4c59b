package plan

import (
	"kurabe"
	"kurabe/internal/event"
)

// tellFailover writes the event of a failover once; to is "" while the new primary is not known.
func (d *draft) tellFailover(s primaryState, to kurabe.InstanceID) {
	g := d.group
	if g.HandoverTo != "" || d.status.FailoverUndone || g.Electing && !d.w.Spec.Cluster { // it was told of when it was ordered, or begun
		return
	}
	why := ""
	if s.lost {
		why = ": the host of the writer is not heard"
	}
	d.tellBegun(to, why)
}

func (d *draft) tellBegun(to kurabe.InstanceID, why string) {
	kind := event.FailoverBegun
	if d.w.Spec.Cluster {
		kind = event.ClusterFailoverBegun.With(d.serverName(to))
	}
	d.tell(kind.And(why))
}

// dropFailoverRequest drops a failover that the user asked for and that has not begun, because
// there was another one just now.
func (d *draft) dropFailoverRequest() {
	wish, to := d.w.Spec.FailoverSeq, d.w.Spec.FailoverTo
	if wish > d.status.FailoverSeq && (to == "" || to == d.group.Primary) {
		d.status.FailoverSeq = wish
		d.because("the failover that was asked for is given up: there was one just now")
		d.tell(event.FailoverAbandoned)
	}
}

// tellCalledOff writes the event that a failover in order has no target any more.
func (d *draft) tellCalledOff() {
	const why = "no standby has every commit any more"
	d.because("the failover is called off: " + why)
	if d.w.Spec.Cluster {
		d.tell(event.ClusterFailoverFailed.And(": " + why))
		return
	}
	d.tell(event.FailoverCalledOff.With(why))
	d.status.FailoverUndone = true
}

// tellActivation writes the event that the same server is started again.
func (d *draft) tellActivation() {
	kind := event.ActivationBegun
	if d.w.Spec.Cluster {
		kind = event.ClusterSamePrimary.With(d.serverName(d.group.Primary))
	}
	d.tell(kind.And(": no standby has every commit, so the same server is started again"))
}

// completeFailover writes the event of the end of a failover once the new primary accepts writes,
// since clients can use it only then; also when the old primary was started again, or continues.
func (d *draft) completeFailover() {
	s := &d.status
	if !s.FailingOver && !s.Activating && !s.FailoverUndone || !d.primaryState().writing {
		return
	}
	if !s.FailingOver && !d.primaryMayWrite() {
		return // it writes still, and may just be stopping
	}
	if s.FailingOver && s.Move == "" { // which nobody has lost a server for
		s.Failovers++
	}
	d.tellServes()
	s.FailingOver, s.Activating, s.FailoverUndone = false, false, false
}

// primaryMayWrite says whether the primary's order is to write, not to step down.
func (d *draft) primaryMayWrite() bool {
	a := d.assigned(d.group.Primary)
	return a != nil && a.Role != nil && a.Role.Duty == kurabe.DutyWrite
}

// tellServes writes which server serves clients: another one, or the same again.
func (d *draft) tellServes() {
	s, w := &d.status, d.group.Primary
	if d.w.Spec.Cluster {
		d.tell(event.ClusterFailoverDone.With(d.serverName(w)).And(", in zone " + d.zoneOf(w)))
		return
	}
	if s.Activating {
		d.tell(event.ActivationDone.And(". Commits that waited for the standby when the server ended may be in the database, although their clients had no answer"))
	}
	switch {
	case s.FailingOver:
		d.tell(event.FailoverToStandby.And(". The endpoint leads to it: no DNS name has to follow"))
		d.tell(event.FailoverDone.And(": the writer is in zone " + d.zoneOf(w)))
	case s.FailoverUndone:
		d.tell(event.FailoverUndone)
	}
}

// serverName is what users call a server of a cluster.
func (d *draft) serverName(id kurabe.InstanceID) string {
	return kurabe.ServerName(d.w.Spec.EffectiveName(d.status.AppliedNext), id)
}
