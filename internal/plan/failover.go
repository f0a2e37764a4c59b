package plan

import (
	"fmt"
	"slices"
	"time"

	"kurabe"
)

// writerState is what is known of the server that is to write.
type writerState struct {
	report *kurabe.InstanceReport
	// dead: it obeyed this epoch, and has ended or does not answer. Nobody is about to
	// start it.
	dead bool
	// leading: it can be followed, under this epoch and its newest assignment. writing: clients
	// are let in, too.
	leading, writing bool
	// lost: its host is not heard. What it has said may be true no longer.
	lost bool
}

func (d *draft) writerState() writerState {
	g := d.group
	r, a := d.reported(g.Primary), d.assigned(g.Primary)
	s := writerState{report: r}
	if m, _ := g.Member(g.Primary); d.silent(m.Host) {
		// Its lease has ended by now; only a standby that follows it could have given it more.
		s.lost = true
		s.dead = !d.vouched()
		return s
	}
	if r == nil || r.Role == nil || a == nil || a.Role == nil || r.Role.Epoch != g.Epoch {
		return s
	}
	s.leading = r.Running && (r.Role.IsPrimary || r.Role.Writing) && !r.Role.Unresponsive && r.Generation == a.Generation
	s.writing = s.leading && r.Role.Writing
	// A start that was ordered and is not used up is under way, unless it fails.
	ordered := a.Role.Duty == kurabe.DutyWrite && a.Role.StartSeq > r.Role.StartedSeq && (r.Failure == nil || r.Failure.Attempts < startTries)
	// One that has a lease may go on when it answers again; its host ends it.
	s.dead = r.Role.Unresponsive && !a.Role.Leased || !r.Running && !ordered
	return s
}

// able says whether a member's server lives, as a follower.
func (d *draft) able(id kurabe.InstanceID) bool {
	r := d.heard(id)
	return r != nil && r.Role != nil && r.Running && !r.Role.Unresponsive && !r.Role.Writing
}

// candidate is a member of Sync whose server lives, the one with most of them, "" when there
// is none. Where it is the only one in Sync, it has all that was acknowledged.
func (d *draft) candidate() kurabe.InstanceID {
	var best kurabe.InstanceID
	for _, id := range d.group.SyncSet {
		r := d.heard(id)
		if !d.able(id) {
			continue
		}
		if best == "" || r.Role.Position > d.reported(best).Role.Position {
			best = id
		}
	}
	return best
}

// succeed gives the right to write to a member of Sync when the writer is dead. Without
// one that lives the writer is started again: it has all that was acknowledged, too.
func (d *draft) succeed() {
	g := d.group
	s := d.writerState()
	yields := !s.lost && g.HandoverTo != "" && s.report != nil && s.report.Role != nil && s.report.Role.SteppedDown && !s.report.Running
	if !s.dead && !yields && !g.Electing {
		return
	}
	to := d.successor()
	if to != "" && len(g.SyncSet) > 1 && !d.chosen() {
		d.choose(s)
		return
	}
	switch {
	case to != "" && yields:
		d.because(fmt.Sprintf("%s has handed over to %s", g.Primary, to))
	case to != "":
		d.tellFailover(s, to)
		d.because(fmt.Sprintf("%s %s; %s has all that was acknowledged", g.Primary, s.trouble(), to))
	default:
		d.startsAgain(s)
		return
	}
	outlasts := g.Electing && g.WaitForOldLease == g.Epoch
	g.HandoverTo, g.HandoverCandidate, g.Electing = "", "", false
	g.Epoch++
	g.Primary = to
	if !yields {
		d.abandon()
	}
	if outlasts {
		g.WaitForOldLease = g.Epoch
	}
	d.mindUnheard(s)
	// Nobody waits for the others until they follow the new writer and have caught up.
	d.setSync(nil)
}

// mindUnheard has the writer of the group's epoch, whose host is not heard, be outlasted.
func (d *draft) mindUnheard(s writerState) {
	if s.lost {
		m, _ := d.w.Group.Member(d.w.Group.Primary)
		d.group.WaitForOldLease = d.group.Epoch
		d.result.RequireSilent = append(d.result.RequireSilent, m.Host)
	}
}

// startsAgain is for a writer whose place nobody can take: it is started again, or it answers
// again, by itself (see startSeq).
func (d *draft) startsAgain(s writerState) {
	g := d.group
	if g.HandoverTo != "" || g.Electing && !d.w.Spec.Cluster { // a failover was told of
		d.status.FailoverUndone = true
	}
	g.HandoverTo, g.HandoverCandidate = "", ""
	if g.Electing && (s.lost || !s.dead) {
		return // who may have every commit is waited for
	}
	g.Electing = false
	d.because(fmt.Sprintf("%s %s, and nobody else who has all that was acknowledged can take over", g.Primary, s.trouble()))
	if len(g.Members) > 1 && !s.lost && !s.report.Running && !d.status.Activating && d.status.Action != kurabe.StateStarting { // a start is told of as one
		d.status.Activating = true
		d.tellActivation()
	}
}

// successor is who can take over from a dead writer, "" for nobody. Of several members of
// Sync all have to be heard, since nobody knows which of them has what the others lack.
func (d *draft) successor() kurabe.InstanceID {
	for _, id := range d.group.SyncSet {
		if !d.able(id) && len(d.group.SyncSet) > 1 {
			d.because(fmt.Sprintf("%s may be the one that has every commit, and does not run or is not heard", id))
			return ""
		}
	}
	to := d.candidate()
	for _, id := range d.group.SyncSet {
		if to != "" && !d.fresh(id) {
			d.because(fmt.Sprintf("the host of %s has not spoken lately", id))
			to = ""
		}
	}
	return to
}

// choose has everybody follow nobody, in an epoch of its own. From when all of Sync obey,
// no commit of the old writer can be acknowledged.
func (d *draft) choose(s writerState) {
	g := d.group
	if g.Electing {
		d.because("it is being found out which of the standbys has most")
		return
	}
	if !d.w.Spec.Cluster { // whose users are told to which server
		d.tellFailover(s, "")
	}
	d.because(fmt.Sprintf("%s %s; one of %v has all that was acknowledged", g.Primary, s.trouble(), g.SyncSet))
	g.HandoverTo, g.HandoverCandidate, g.Electing = "", "", true
	g.Epoch++
	d.mindUnheard(s)
}

// chosen says whether it is known which member of Sync has most.
func (d *draft) chosen() bool {
	return d.group.Electing && !slices.ContainsFunc(d.group.SyncSet, func(id kurabe.InstanceID) bool {
		r := d.heard(id).Role
		return r.Epoch != d.group.Epoch || !r.Detached
	})
}

// trouble is why a writer is followed by another one.
func (s writerState) trouble() string {
	if s.lost {
		return "is on a host that is not heard, and its lease has ended"
	}
	return "has ended or does not answer"
}

// changedWriter moves what belongs to the writer.
func (d *draft) changedWriter() {
	g := d.group
	for n, m := range g.Members {
		if m.ID != g.Primary && m.ListensAt == "" {
			g.Members[n].ListensAt = d.ownAddress(d.hostReport(m.Host))
		}
	}
	if r := d.reported(g.Primary); r != nil {
		d.status.SeenCrashes, d.status.SeenOOMKills = r.Crashes, r.OOMKills
	}
	d.status.FailingOver, d.status.Activating, d.status.FailoverUndone = true, false, false
}

func (d *draft) zone(id kurabe.InstanceID) string {
	m, _ := d.group.Member(id)
	return m.Zone
}

// handOver begins a failover in order: for the user who asks for one, or because the
// standby has what the writer would need a restart for. It is to the only member of Sync;
// where there are several, the others leave it first, while clients go on.
func (d *draft) handOver() {
	g := d.group
	asked := d.w.Spec.FailoverSeq > d.status.FailoverSeq
	if g.Electing || d.status.FailoverUndone { // one has come to nothing, and its end is told first
		return
	}
	if g.HandoverTo != "" {
		if to := d.candidate(); to == "" || !g.InSyncSet(g.HandoverTo) {
			d.tellCalledOff()
			g.HandoverTo = ""
		}
		return
	}
	s := d.writerState()
	if asked && d.w.Spec.FailoverTo == g.Primary {
		d.abandon() // it has become the writer meanwhile
		asked = false
	}
	if !d.handOverForDisk && d.rollsFirst() {
		d.because("a standby restarts with what the writer lacks, and then takes over")
		g.HandoverCandidate = ""
		return
	}
	moves := d.movesOff() || d.handOverForDisk
	if !asked && !moves && !d.rolled() {
		g.HandoverCandidate, d.status.CatchUpBy = "", time.Time{}
		return
	}
	to := d.heir(asked)
	if to != "" && g.HandoverCandidate != "" && d.succeeds(g.HandoverCandidate) && len(g.SyncSet) > 1 {
		d.because(fmt.Sprintf("the writer is to wait for %s alone", g.HandoverCandidate))
		return // it has been told so, and says soon that it does: another choice would begin anew
	}
	if to == "" || !s.writing {
		if asked {
			d.because("the failover that was asked for waits for a standby that has every commit, has room to write, and whose host has spoken lately")
		}
		g.HandoverCandidate = ""
		return
	}
	if len(g.SyncSet) > 1 {
		g.HandoverCandidate = to
		d.because(fmt.Sprintf("%s is to have every commit, so that the writer can hand over to it", to))
		return
	}
	if d.catchesUp(to) {
		return
	}
	d.status.FailoverSeq, d.status.CatchUpBy = d.w.Spec.FailoverSeq, time.Time{}
	g.HandoverTo, g.HandoverCandidate = to, ""
	d.acting(false, kurabe.StateRebooting, "a failover in order, to "+string(to))
	why := ""
	if d.handOverForDisk {
		why = ": the disk of the writer's host is nearly full"
	}
	d.tellBegun(to, why)
}

// rollsFirst says whether a failover waits until a standby has restarted with what the writer
// still lacks.
func (d *draft) rollsFirst() bool {
	m, _ := d.group.Member(d.group.Primary)
	return d.waitsForStandby(m, d.assigned(m.ID)) && !d.rolled() && !d.newestRefused()
}

// heir is who the writer is to hand over to: whom the user names, or who has restarted
// already with what the writer lacks, or who has most.
func (d *draft) heir(asked bool) kurabe.InstanceID {
	named := d.w.Spec.FailoverTo
	if asked && named != "" {
		if d.succeeds(named) {
			return named
		}
		return ""
	}
	var best kurabe.InstanceID
	for _, id := range d.group.SyncSet {
		if d.succeeds(id) && (!d.handOverForDisk || d.refuge(id)) && (best == "" || d.hasRolled(id) && !d.hasRolled(best)) {
			best = id
		}
	}
	return best
}

// succeeds says whether the writer can hand over to a member: it lives, may have every commit,
// has room to write, and the writer hears it. Its host has spoken lately: else nobody would be
// told to write, and the writer, which has stopped for that, would start again and stop again.
func (d *draft) succeeds(id kurabe.InstanceID) bool {
	w := d.heard(d.group.Primary)
	silent := w == nil || w.Role == nil || slices.Contains(w.Role.SilentFollowers, id)
	return d.group.InSyncSet(id) && d.able(id) && !silent && d.noRoom(id) == "" && d.fresh(id)
}

// rolled says whether a standby has restarted with what the writer still lacks.
func (d *draft) rolled() bool {
	writer := d.assigned(d.group.Primary)
	return writer != nil && writer.Boot < d.next.Boot && !d.current(*writer) && slices.ContainsFunc(d.group.SyncSet, d.hasRolled)
}

// hasRolled says whether a member runs with the newest content.
func (d *draft) hasRolled(id kurabe.InstanceID) bool {
	a, r := d.assigned(id), d.reported(id)
	return a != nil && r != nil && r.Done && r.Generation == a.Generation && a.Boot == d.next.Boot && r.Boot == a.Boot
}

// catchUpMost is how long a failover in order waits for a standby that is behind. One that is so
// for longer is so all the time, and whoever asks for a failover is not to wait for ever.
const catchUpMost = 10 * time.Second

// catchesUp says whether a failover in order waits until the standby has applied what it has:
// clients go on meanwhile, and afterwards they would wait for just that. A writer whose disk is
// nearly full has no time.
func (d *draft) catchesUp(to kurabe.InstanceID) bool {
	r := d.heard(to)
	if d.handOverForDisk || r == nil || r.Role == nil || !r.Role.ApplyLags {
		return false
	}
	if d.status.CatchUpBy.IsZero() {
		d.status.CatchUpBy = d.w.Now.Add(catchUpMost)
	}
	if !d.w.Now.Before(d.status.CatchUpBy) {
		return false
	}
	d.because(fmt.Sprintf("the failover waits until %s has applied what it has, until %s at the latest", to, d.status.CatchUpBy.UTC().Format(time.RFC3339)))
	d.lookAgain(d.status.CatchUpBy)
	return true
}
