package plan

import (
	"fmt"
	"slices"
	"time"

	"kurabe"
)

// primaryState is what is known of the server that is to write.
type primaryState struct {
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

func (d *draft) primaryState() primaryState {
	g := d.group
	r, a := d.reported(g.Primary), d.assigned(g.Primary)
	s := primaryState{report: r}
	if m, _ := g.Member(g.Primary); d.silent(m.Host) {
		// Its lease has ended by now; only a standby that follows it could have given it more.
		s.lost = true
		s.dead = !d.confirmedByStandby()
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

// isLiveFollower says whether a member's server runs and answers as a follower.
func (d *draft) isLiveFollower(id kurabe.InstanceID) bool {
	r := d.heardReport(id)
	return r != nil && r.Role != nil && r.Running && !r.Role.Unresponsive && !r.Role.Writing
}

// mostAdvanced is the running member of the sync set with the highest log position, "" for none. A
// single member of the sync set has every acknowledged commit.
func (d *draft) mostAdvanced() kurabe.InstanceID {
	var best kurabe.InstanceID
	for _, id := range d.group.SyncSet {
		r := d.heardReport(id)
		if !d.isLiveFollower(id) {
			continue
		}
		if best == "" || r.Role.Position > d.reported(best).Role.Position {
			best = id
		}
	}
	return best
}

// failOver makes a member of the sync set the primary when the primary is dead. Without a running
// member the old primary is started again: it, too, has every acknowledged commit.
func (d *draft) failOver() {
	g := d.group
	s := d.primaryState()
	yields := !s.lost && g.HandoverTo != "" && s.report != nil && s.report.Role != nil && s.report.Role.SteppedDown && !s.report.Running
	if !s.dead && !yields && !g.Electing {
		return
	}
	to := d.successor()
	if to != "" && len(g.SyncSet) > 1 && !d.electionDone() {
		d.beginElection(s)
		return
	}
	switch {
	case to != "" && yields:
		d.because(fmt.Sprintf("%s has handed over to %s", g.Primary, to))
	case to != "":
		d.tellFailover(s, to)
		d.because(fmt.Sprintf("%s %s; %s has all that was acknowledged", g.Primary, s.trouble(), to))
	default:
		d.restartPrimary(s)
		return
	}
	outlasts := g.Electing && g.WaitForOldLease == g.Epoch
	g.HandoverTo, g.HandoverCandidate, g.Electing = "", "", false
	g.Epoch++
	g.Primary = to
	if !yields {
		d.dropFailoverRequest()
	}
	if outlasts {
		g.WaitForOldLease = g.Epoch
	}
	d.outlastSilentPrimary(s)
	// Nobody waits for the others until they follow the new primary and have caught up.
	d.setSyncSet(nil)
}

// outlastSilentPrimary makes the next primary wait for the end of the old primary's lease when the
// old primary's host is silent.
func (d *draft) outlastSilentPrimary(s primaryState) {
	if s.lost {
		m, _ := d.w.Group.Member(d.w.Group.Primary)
		d.group.WaitForOldLease = d.group.Epoch
		d.result.RequireSilent = append(d.result.RequireSilent, m.Host)
	}
}

// restartPrimary starts a dead primary again that nobody can replace (see startSeq), or waits
// until it answers again.
func (d *draft) restartPrimary(s primaryState) {
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

// successor is the member that can take over from a dead primary, "" for none. Of several members
// of the sync set all must be heard, since nobody knows which of them has a commit that the others
// lack.
func (d *draft) successor() kurabe.InstanceID {
	for _, id := range d.group.SyncSet {
		if !d.isLiveFollower(id) && len(d.group.SyncSet) > 1 {
			d.because(fmt.Sprintf("%s may be the one that has every commit, and does not run or is not heard", id))
			return ""
		}
	}
	to := d.mostAdvanced()
	for _, id := range d.group.SyncSet {
		if to != "" && !d.spokeLately(id) {
			d.because(fmt.Sprintf("the host of %s has not spoken lately", id))
			to = ""
		}
	}
	return to
}

// beginElection detaches every standby from the primary, in an epoch of its own. Once all of the
// sync set obey, no commit of the old primary can be acknowledged, and their log positions can be
// compared.
func (d *draft) beginElection(s primaryState) {
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
	d.outlastSilentPrimary(s)
}

// electionDone says whether it is known which member of the sync set has most.
func (d *draft) electionDone() bool {
	return d.group.Electing && !slices.ContainsFunc(d.group.SyncSet, func(id kurabe.InstanceID) bool {
		r := d.heardReport(id).Role
		return r.Epoch != d.group.Epoch || !r.Detached
	})
}

// trouble is the reason, for people, why the primary is replaced.
func (s primaryState) trouble() string {
	if s.lost {
		return "is on a host that is not heard, and its lease has ended"
	}
	return "has ended or does not answer"
}

// adoptPrimary moves to the new primary what belongs to the primary's role.
func (d *draft) adoptPrimary() {
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

func (d *draft) zoneOf(id kurabe.InstanceID) string {
	m, _ := d.group.Member(id)
	return m.Zone
}

// failOverInOrder begins a failover without loss of the old primary: at the user's request, or
// because a standby already runs with a content for which the primary would have to restart. The
// target is the only member of the sync set; where there are several, the others leave the set
// first, while clients continue.
func (d *draft) failOverInOrder() {
	g := d.group
	asked := d.w.Spec.FailoverSeq > d.status.FailoverSeq
	if g.Electing || d.status.FailoverUndone { // one has come to nothing, and its end is told first
		return
	}
	if g.HandoverTo != "" {
		if to := d.mostAdvanced(); to == "" || !g.InSyncSet(g.HandoverTo) {
			d.tellCalledOff()
			g.HandoverTo = ""
		}
		return
	}
	s := d.primaryState()
	if asked && d.w.Spec.FailoverTo == g.Primary {
		d.dropFailoverRequest() // it has become the primary meanwhile
		asked = false
	}
	if !d.handOverForDisk && d.restartsStandbyFirst() {
		d.because("a standby restarts with what the writer lacks, and then takes over")
		g.HandoverCandidate = ""
		return
	}
	moves := d.leavesDrainedHost() || d.handOverForDisk
	if !asked && !moves && !d.standbyRestarted() {
		g.HandoverCandidate, d.status.CatchUpBy = "", time.Time{}
		return
	}
	to := d.handoverTarget(asked)
	if to != "" && g.HandoverCandidate != "" && d.canTakeOver(g.HandoverCandidate) && len(g.SyncSet) > 1 {
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
	if d.waitsForReplay(to) {
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

// restartsStandbyFirst says whether the failover waits until a standby has restarted with the
// content that the primary still lacks.
func (d *draft) restartsStandbyFirst() bool {
	m, _ := d.group.Member(d.group.Primary)
	return d.waitsForStandby(m, d.assigned(m.ID)) && !d.standbyRestarted() && !d.newestRefused()
}

// handoverTarget is the member that takes over in a failover in order: the one that the user
// names, or one that already runs with the newest content, or the most advanced.
func (d *draft) handoverTarget(asked bool) kurabe.InstanceID {
	named := d.w.Spec.FailoverTo
	if asked && named != "" {
		if d.canTakeOver(named) {
			return named
		}
		return ""
	}
	var best kurabe.InstanceID
	for _, id := range d.group.SyncSet {
		if d.canTakeOver(id) && (!d.handOverForDisk || d.canReplaceFullPrimary(id)) && (best == "" || d.runsNewest(id) && !d.runsNewest(best)) {
			best = id
		}
	}
	return best
}

// canTakeOver says whether the primary can hand over to a member: it runs, is in the sync set, has
// disk space, and the primary hears it. Its host must have spoken lately: else nobody would
// receive the order to promote, and the primary, which has stopped for the handover, would start
// and stop again.
func (d *draft) canTakeOver(id kurabe.InstanceID) bool {
	w := d.heardReport(d.group.Primary)
	silent := w == nil || w.Role == nil || slices.Contains(w.Role.SilentFollowers, id)
	return d.group.InSyncSet(id) && d.isLiveFollower(id) && !silent && d.whyNoRoom(id) == "" && d.spokeLately(id)
}

// standbyRestarted says whether a standby has restarted with the content that the primary still
// lacks.
func (d *draft) standbyRestarted() bool {
	primary := d.assigned(d.group.Primary)
	return primary != nil && primary.Boot < d.next.Boot && !d.isCurrent(*primary) && slices.ContainsFunc(d.group.SyncSet, d.runsNewest)
}

// runsNewest says whether a member runs with the newest content.
func (d *draft) runsNewest(id kurabe.InstanceID) bool {
	a, r := d.assigned(id), d.reported(id)
	return a != nil && r != nil && r.Done && r.Generation == a.Generation && a.Boot == d.next.Boot && r.Boot == a.Boot
}

// catchUpMost is how long a failover in order waits for a standby that is behind. One that is so
// for longer is so all the time, and whoever asks for a failover is not to wait for ever.
const catchUpMost = 10 * time.Second

// waitsForReplay says whether a failover in order waits until the standby has applied the log that
// it has received: clients continue meanwhile, and would otherwise wait for that afterwards. A
// primary whose disk is nearly full does not wait.
func (d *draft) waitsForReplay(to kurabe.InstanceID) bool {
	r := d.heardReport(to)
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
