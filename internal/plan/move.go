package plan

import (
	"fmt"
	"maps"
	"slices"

	"kurabe"
	"kurabe/internal/event"
)

// planMove is planGroup, also of an instance with one server whose host is to be emptied: it
// is planned as one with a standby until another host's server writes, and then as what it is
// again. Nothing else knows of it: what such an instance goes through is what a conversion
// there and back does, with a failover in order between.
func (d *draft) planMove() {
	asked := d.status.Applied.MultiAZ
	d.advanceMove()
	if d.status.Move == "" {
		d.planGroup()
		return
	}
	d.status.Applied.MultiAZ = d.status.Move == kurabe.MoveBegun
	d.planGroup()
	d.status.Applied.MultiAZ, d.status.SecondZone = asked, ""
	d.tellMove()
}

// advanceMove takes the next step of a move.
func (d *draft) advanceMove() {
	s := &d.status
	host := d.primaryHost()
	leaving := d.w.Emptied[host] != ""
	switch {
	case s.Applied.MultiAZ: // by the user's wish, and so it moves by itself
		s.Move = ""
	case s.Move == "" && leaving && d.mayMove(host):
		s.Move = kurabe.MoveBegun
		d.because("it is to leave its host: " + d.w.Emptied[host])
		d.tell(event.Moving.With(d.w.Emptied[host]))
	case s.Move == kurabe.MoveBegun && !leaving && (d.group == nil || d.primaryState().writing):
		s.Move = kurabe.MoveEnding
	case s.Move == kurabe.MoveEnding && (d.group == nil || len(d.group.Members) == 1):
		s.Move = ""
	}
}

// primaryHost is the host of the primary.
func (d *draft) primaryHost() kurabe.HostID {
	if d.group == nil {
		return d.next.Host
	}
	m, _ := d.group.Member(d.group.Primary)
	return m.Host
}

// mayMove says whether an instance can be moved without more than a failover in order.
func (d *draft) mayMove(from kurabe.HostID) bool {
	if d.status.FailingOver || d.status.Activating || d.status.FailoverUndone {
		d.because("it stays until the failover before is over") // whose end is told, which that of a move is not
		return false
	}
	if d.silent(from) || d.group != nil && d.group.SwitchoverTo != "" || d.status.State != kurabe.StateAvailable || d.next.Goal != kurabe.GoalRunning {
		return false
	}
	if d.w.Spec.Engine.RestartsForLog() && !hasBinlog(d.next) {
		return d.cannotMove(from, "without automated backups its server would have to restart twice")
	}
	if _, _, why := d.chooseMove(); why != "" {
		return d.cannotMove(from, why)
	}
	return true
}

func (d *draft) cannotMove(from kurabe.HostID, why string) bool {
	d.because(fmt.Sprintf("it stays although %s: %s", d.w.Closed[from], why))
	d.noteCannotLeave(d.next.Instance, why)
	return false
}

// chooseMove takes another host, in the zone of now if there is one.
func (d *draft) chooseMove() (host kurabe.HostReport, zone, why string) {
	applied := d.status.Applied
	class, ok := kurabe.FindClass(applied.Class)
	if !ok {
		return host, "", "class " + applied.Class + " is not known"
	}
	p := kurabe.Placement{Engine: d.w.Spec.Engine, Version: applied.EngineVersion, Class: class, Limits: applied.Limits()}
	from, held := d.hostReport(d.primaryHost()), maps.Clone(d.w.Reserved)
	if d.group != nil {
		held = d.reservedMemory()
	}
	from.Zones = []string{""} // the two servers are there for a while only, and may be in one zone
	others := slices.DeleteFunc(slices.Clone(d.w.Hosts), func(h kurabe.HostReport) bool { return h.Host == from.Host })
	var beside []kurabe.HostReport
	for _, h := range others {
		if slices.Contains(h.Zones, d.status.Zone) {
			h.Zones = []string{d.status.Zone}
			beside = append(beside, h)
		}
	}
	for _, hosts := range [][]kurabe.HostReport{beside, others} {
		if host, zone, why = p.ChooseStandby(from, "", hosts, d.w.Closed, held); why == "" {
			return host, zone, ""
		}
	}
	if len(others) == 0 {
		why = "there is no other host"
	}
	return host, "", why
}

// tellMove tells of the move instead of the failover that is a part of it.
func (d *draft) tellMove() {
	for n, e := range d.result.Events {
		if e.ID == event.FailoverDone.ID {
			d.result.Events[n] = event.Moved.With(d.status.Host, d.status.Zone).As(e)
		}
	}
	parts := []string{event.FailoverBegun.ID, event.FailoverToStandby.ID, event.FailoverUndone.ID, event.FailoverCalledOff.ID}
	d.result.Events = slices.DeleteFunc(d.result.Events, func(e kurabe.Event) bool { return slices.Contains(parts, e.ID) })
}

// onTheWay are the states that an instance leaves by itself: whatever keeps it on its host then
// is over soon.
var onTheWay = []kurabe.State{
	kurabe.StateCreating, kurabe.StateAvailable, kurabe.StateModifying, kurabe.StateRenaming, kurabe.StateRebooting, kurabe.StateFailingOver,
	kurabe.StateStarting, kurabe.StateStopping, kurabe.StateDeleting, kurabe.StateBackingUp, kurabe.StateUpgrading, kurabe.StateResettingCredentials,
}

// noteCannotLeave notes that a server cannot leave its drained host.
func (d *draft) noteCannotLeave(id kurabe.InstanceID, why string) {
	if d.result.CannotLeave == nil {
		d.result.CannotLeave = map[kurabe.InstanceID]string{}
	}
	d.result.CannotLeave[id] = why
}

// noteBlockedMoves notes the servers that cannot leave their drained hosts, beyond those found
// while their moves were planned.
func (d *draft) noteBlockedMoves() {
	if !d.had || d.w.Spec.Deleting != nil {
		return
	}
	if d.group == nil {
		d.noteBlockedMove(d.next.Instance, d.next.Host, "")
		return
	}
	none := d.unplaced // why nobody can take the primary's place
	kept := 0
	for _, m := range d.standbys() {
		d.noteBlockedMove(m.ID, m.Host, "")
		if why := d.result.CannotLeave[m.ID]; why != "" {
			none, kept = why, kept+1
		}
	}
	if kept < len(d.standbys()) {
		none = ""
	}
	w, _ := d.group.Member(d.group.Primary)
	d.noteBlockedMove(w.ID, w.Host, none)
}

// noteBlockedMove is noteBlockedMoves of one server; why is the known reason, "" for none.
func (d *draft) noteBlockedMove(id kurabe.InstanceID, host kurabe.HostID, why string) {
	switch {
	case d.w.Emptied[host] == "":
		return
	case d.silent(host):
		why = "its host is not heard"
	case d.follows():
		why = "it is a read replica: promote it, or make another one elsewhere and delete it"
	case !slices.Contains(onTheWay, d.status.State):
		why = "it is " + string(d.status.State)
	}
	if why != "" {
		d.noteCannotLeave(id, why)
	}
}
