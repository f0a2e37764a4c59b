package plan

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"kurabe"
	"kurabe/internal/event"
)

// How long a switchover may take: until the replica lacks so little that it is begun, while
// clients go on, and from then on, while nobody serves them, until the replica has all. What
// takes longer is called off.
const (
	switchBegins = 30 * time.Second
	switchTakes  = time.Minute
)

// switchOver has the primary of an instance yield to a read replica of it, and says whether
// that is under way: then nothing else is decided of its servers. From the moment that the
// record says so the replica may take the record away, and with it the right to write. As long
// as it is there, this instance may take the word back: so one of them writes, whatever dies.
func (d *draft) switchOver() bool {
	g := d.group
	if g.SwitchoverTo == "" {
		return d.beginSwitch()
	}
	d.capDeadline(&d.status.SwitchBy, switchTakes)
	why := d.switchFails()
	if why == "" {
		d.lookAgain(d.status.SwitchBy)
		d.because(fmt.Sprintf("its writer yields to its read replica %s", g.SwitchoverTo))
		return true
	}
	d.endSwitch("The switchover is called off, and the DB instance goes on as the source: " + why)
	g.SwitchoverTo = ""
	return false
}

// beginSwitch takes the user's wish up, once, as soon as little is missing.
func (d *draft) beginSwitch() bool {
	wish, s := d.w.Spec.Switchover, &d.status
	if !d.wantsSwitch() {
		return false
	}
	if s.SwitchBy.IsZero() {
		s.SwitchBy = d.w.Now.Add(switchBegins)
		d.acting(false, kurabe.StateModifying, "the user asked for a switchover to "+string(wish.To))
	}
	d.capDeadline(&s.SwitchBy, switchBegins)
	why := d.whySwitchWaits(wish.To)
	switch {
	case why != "" && !d.w.Now.Before(s.SwitchBy):
		d.endSwitch("The switchover is called off before anything was done: " + why)
		s.SwitchSeq = wish.Seq
		return false
	case why != "":
		d.because("the switchover waits: " + why)
		d.lookAgain(s.SwitchBy)
		return false
	}
	d.group.SwitchoverTo, s.SwitchSeq, s.SwitchBy = wish.To, wish.Seq, d.w.Now.Add(switchTakes)
	d.lookAgain(s.SwitchBy)
	d.because(fmt.Sprintf("its read replica %s lacks little: no client writes here any more", wish.To))
	d.tell(event.SwitchoverBegun.And(": the DB instance takes no writes from here on, and its read replica takes its place once it has everything"))
	return true
}

// wantsSwitch says whether there is a wish that was not taken up.
func (d *draft) wantsSwitch() bool {
	return d.w.Spec.Switchover != nil && d.w.Spec.Switchover.Seq > d.status.SwitchSeq
}

// endSwitch tells why a switchover is none any more.
func (d *draft) endSwitch(message string) {
	d.status.SwitchBy = time.Time{}
	d.because(message)
	d.tell(event.SwitchoverFailed.With(message))
}

// dropSwitch takes up a wish that nothing can come of: nobody follows the instance.
func (d *draft) dropSwitch() {
	if d.wantsSwitch() {
		d.status.SwitchSeq = d.w.Spec.Switchover.Seq
		d.endSwitch("The switchover is called off before anything was done: the DB instance has no read replica")
	}
}

// whySwitchWaits says why a switchover cannot begin now.
func (d *draft) whySwitchWaits(to kurabe.InstanceID) string {
	s, g := d.primaryState(), d.group
	m := g.Members[0]
	switch {
	case d.next.Goal != kurabe.GoalRunning:
		return "it is to stop"
	case d.status.Applied.MultiAZ || len(g.Members) > 1 || d.status.Converting || d.status.Move != "":
		return "it has more than one server"
	case m.ID != d.w.Spec.ID || m.ListensAt != "":
		return "its server listens behind its endpoint"
	case !slices.Contains(d.w.Replicas, to):
		return "the read replica is there no more"
	case d.w.BackingUp:
		return "a snapshot is being taken of it"
	case !s.writing || !s.report.Done:
		return "its server has not done what it is to"
	case slices.Contains(s.report.Role.NeedRebuild, to) || slices.Contains(s.report.Role.SilentFollowers, to) || !slices.Contains(s.report.Role.NearlyCaughtUp, to):
		return "the read replica does not follow, or lacks too much of the log"
	}
	return d.whyTargetUnfit()
}

// whyTargetUnfit says why the replica cannot take over now, from its own report.
func (d *draft) whyTargetUnfit() string {
	h := d.w.SwitchoverTarget
	if h == nil || h.Assignment == nil || h.Report == nil || h.Report.Role == nil || d.silent(h.Assignment.Host) {
		return "nothing is known of the read replica"
	}
	if r := h.Report; !r.Running || !r.Done || r.Generation != h.Assignment.Generation || !r.Role.Following {
		return "the read replica has not done what it is to"
	}
	return ""
}

// switchFails says why a switchover that is under way comes to nothing.
func (d *draft) switchFails() string {
	g, a, r := d.group, d.assigned(d.group.Primary), d.reported(d.group.Primary)
	obeyed := a != nil && a.Role != nil && a.Role.Duty == kurabe.DutyStepDown && r != nil && r.Role != nil && r.Generation == a.Generation
	switch {
	case d.next.Goal != kurabe.GoalRunning:
		return "it is to stop"
	case d.status.Applied.MultiAZ:
		return "it is to have a second server"
	case !slices.Contains(d.w.Replicas, g.SwitchoverTo):
		return "the read replica is there no more"
	case obeyed && !r.Running && !r.Role.SteppedDown:
		return "its server ended, and did not stop in order"
	case d.targetLacksLog():
		return "the read replica lost its connection before it had everything"
	case !d.w.Now.Before(d.status.SwitchBy):
		return fmt.Sprintf("it has taken more than %v", switchTakes)
	}
	return ""
}

// targetLacksLog says whether the replica lacks log that it cannot receive any more: its source,
// which alone has it, is down.
func (d *draft) targetLacksLog() bool {
	h := d.w.SwitchoverTarget
	if h == nil || h.Assignment == nil || h.Report == nil {
		return false
	}
	a, r := h.Assignment, h.Report
	return a.Role != nil && a.Role.SourceEnd > 0 && r.Generation == a.Generation && r.Running && r.Role != nil && !r.Role.Following &&
		r.Role.Position > 0 && r.Role.Position < a.Role.SourceEnd
}

// end is where the log of a source has ended that has yielded to a replica, 0 of any other. It
// stays so for as long as the record of who writes the source is the one that was read.
func (up *Upstream) end(to kurabe.InstanceID) int64 {
	if up == nil || up.Switch != to || up.Assignment == nil || up.Report == nil {
		return 0
	}
	a, r := up.Assignment, up.Report
	yielded := a.Role != nil && a.Role.Duty == kurabe.DutyStepDown && r.Generation == a.Generation && r.Done && !r.Running && r.Role != nil && r.Role.SteppedDown
	if !yielded {
		return 0
	}
	return r.Role.Position
}

// switching says whether the replica is to take the place of its source.
func (d *draft) switching() bool {
	up := d.w.Source
	return d.follows() && up != nil && (up.Switch == d.w.Spec.ID || up.Asked == d.w.Spec.ID)
}

// hasAllOfSource says whether a replica has all of the log of its source, which has stopped for
// the switchover.
func (d *draft) hasAllOfSource() bool {
	end, a, r := d.w.Source.end(d.w.Spec.ID), d.w.Assignment, d.w.Report
	return end > 0 && d.w.Source.Status != nil && a != nil && a.Goal == kurabe.GoalRunning && a.Role != nil && a.Role.SourceEnd == end &&
		r != nil && r.Generation == a.Generation && r.Running && r.Role != nil && r.Role.HasSourceEnd && !d.silent(a.Host)
}

// takeOver makes a replica the source, and its source a replica, at once: the same
// transaction takes away the record by which the other one would write again.
func (d *draft) takeOver() {
	id, up := d.w.Spec.ID, d.w.Source
	from := d.status.Source
	d.because(fmt.Sprintf("it has all that %s had, which has stopped in order: it is the source from here on", from))
	d.beginReplicaGroup()
	followers := slices.Concat(d.w.Replicas, []kurabe.InstanceID{from})
	d.result.Followers = append(d.result.Followers, demoted(*up.Status, id))
	for _, sibling := range slices.Sorted(maps.Keys(up.Siblings)) {
		if sibling == id {
			continue
		}
		s := *up.Siblings[sibling]
		s.Source = id
		d.result.Followers = append(d.result.Followers, s)
		followers = append(followers, sibling)
	}
	slices.Sort(followers)
	d.w.Replicas = followers
	d.tell(event.SwitchoverDone)
}

// demoted is the status of a source that was just taken the place of.
func demoted(s kurabe.InstanceStatus, by kurabe.InstanceID) kurabe.InstanceStatus {
	s.PendingParameters = slices.Clone(s.PendingParameters)
	s.Source, s.Epoch, s.Promoting = by, 0, false
	s.Replication, s.ReplicationReason, s.ReplicationBrokenSince, s.ReplicationCheckedAt = "", "", time.Time{}, time.Time{}
	s.SwitchBy = time.Time{}
	s.Action, s.State = kurabe.StateModifying, kurabe.StateModifying
	return s
}

// isFormerSource says whether a replica was the source until just now, and is still down.
func (d *draft) isFormerSource() bool {
	a := d.w.Assignment
	return a != nil && a.Role != nil && a.Role.Duty != kurabe.DutyFollow
}
