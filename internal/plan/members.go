package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"kurabe"
	"kurabe/internal/event"
)

// assigned is what a member was told last, nil for nothing; reported what its host says.
func (d *draft) assigned(id kurabe.InstanceID) *kurabe.Assignment {
	if d.w.Assignment != nil && d.w.Assignment.Instance == id {
		return d.w.Assignment
	}
	return d.w.Members[id]
}

func (d *draft) reported(id kurabe.InstanceID) *kurabe.InstanceReport {
	if d.w.Report != nil && d.w.Report.Instance == id {
		return d.w.Report
	}
	return d.w.Reports[id]
}

// newest is the content that was ordered last: a standby may have it before the primary.
func (w World) newest() *kurabe.Assignment {
	best := w.Assignment
	for _, id := range slices.Sorted(maps.Keys(w.Members)) {
		if a := w.Members[id]; a.Boot > best.Boot && a.Goal != kurabe.GoalAbsent {
			best = a
		}
	}
	return best
}

// orderMembers derives the assignment of each member from the common content in d.next and from
// the record of the group.
func (d *draft) orderMembers() {
	if d.group == nil {
		return
	}
	primary := d.next
	for _, m := range d.group.Members {
		a := d.memberAssignment(d.next, m)
		if m.ID == d.group.Primary {
			primary = a
			continue
		}
		if old := d.assigned(m.ID); old == nil || !sameContent(*old, a) {
			a.Generation++
			d.result.Members = append(d.result.Members, a)
		}
	}
	d.next = primary // who else restarts was judged by what all of them share
}

// memberAssignment is the assignment of one member, with the generation of the one in force.
func (d *draft) memberAssignment(content kurabe.Assignment, m kurabe.Member) kurabe.Assignment {
	a, old := content, d.assigned(m.ID)
	a.Settings = maps.Clone(content.Settings)
	switch {
	case d.waitsForStandby(m, old) || d.waitsForPrimary(m, old) || d.waitsItsTurn(m, old):
		a = d.withoutRestart(*old)
	case old != nil && d.lacksNothing(*old):
		a.Boot = old.Boot
	}
	a.Instance, a.Host, a.ListensAt, a.Generation = m.ID, m.Host, m.ListensAt, 0
	if m.ID.Number() > 1 {
		a.Origin = nil // its data is its source's
	}
	if old != nil {
		a.Generation = old.Generation
	}
	if m.ID != d.group.Primary && (!d.status.Applied.MultiAZ || m.Leaving) {
		a.Goal = kurabe.GoalAbsent
	}
	a.Role = d.memberRole(m, old, a.Boot)
	// A standby ends after the primary, so that it has the rest of the log.
	if w := d.reported(d.group.Primary); a.Goal == kurabe.GoalStopped && m.ID != d.group.Primary && w != nil && w.Running && old != nil {
		a.Goal = old.Goal
	}
	if d.fullStandbys[m.ID] && a.Goal == kurabe.GoalRunning {
		a.Goal = kurabe.GoalStopped
	}
	d.nameEndpoints(&a)
	a.Filter = d.filterFor(a.Host, a.Port)
	return a
}

// waitsForStandby says whether the primary keeps its content for now: a standby restarts with the
// new content first, and then takes over. A standby that has every commit restarts first, too: if
// both restarted at once there would be nobody to hand over to, and a primary that stops waits for
// the standby's answer. A restart that the user asked for is the primary's own. A content with
// which a server could not start stops no other server.
func (d *draft) waitsForStandby(m kurabe.Member, old *kurabe.Assignment) bool {
	if m.ID != d.group.Primary || old == nil || old.Boot >= d.next.Boot || d.restartsAtOnce || d.isCurrent(*old) ||
		!d.wasMeantToRun(*old) || !d.isMaintained() || !d.status.Applied.MultiAZ || d.refuses(m, *old) {
		return false
	}
	if d.next.Goal != kurabe.GoalRunning { // the standby holds what is new, and tries it first afterwards
		return d.newestRefused() || len(d.standbys()) > 0 && !lowers(*old, d.next)
	}
	if d.group.Electing && !d.newestRefused() {
		return false // its successor waits, and somebody has to have what was ordered
	}
	return d.newestRefused() || (len(d.group.SyncSet) > 0 || slices.ContainsFunc(d.standbys(), d.rolling)) && !lowers(*old, d.next)
}

// rolling says whether a standby is restarting with the newest content, or has done so and is
// about to have every commit again. One that has obeyed no epoch is in the making, and one that
// does not start may take for ever. After a refusal nobody else is the first to try what comes
// next: whoever has not said what becomes of that is about to.
func (d *draft) rolling(m kurabe.Member) bool {
	a, r, w := d.assigned(m.ID), d.heardReport(m.ID), d.heardReport(d.group.Primary)
	if a == nil || r == nil || r.Role == nil || r.Role.Epoch == 0 || d.rebuilds(m.ID) || d.fullStandbys[m.ID] {
		return false
	}
	if d.status.FailedRollout.Boot > 0 && (a.Boot != d.next.Boot || r.Generation != a.Generation) {
		return true
	}
	if a.Boot != d.next.Boot || d.hasGivenUp(r) {
		return false
	}
	// One that its primary does not hear yet has only begun; one that is far behind is not waited for.
	joins := w != nil && w.Role != nil && r.Role.Following && (slices.Contains(w.Role.NearlyCaughtUp, m.ID) || slices.Contains(w.Role.SilentFollowers, m.ID))
	return !d.runsNewest(m.ID) || joins
}

// hasGivenUp says whether a server has failed to start so often that nobody waits for it.
func (d *draft) hasGivenUp(r *kurabe.InstanceReport) bool {
	return r.Failure != nil && r.Failure.Attempts >= startTries
}

// waitsItsTurn says whether a standby that follows keeps what it has for now: another server
// is restarting, and commits, and whoever reads, need one that does not. With what a server
// could not start with no other one restarts. One that holds may be the next primary, which
// decides itself when it restarts. One that cannot start with what it has waits for nobody.
func (d *draft) waitsItsTurn(m kurabe.Member, old *kurabe.Assignment) bool {
	if m.ID == d.group.Primary || old == nil || old.Role == nil || old.Boot >= d.next.Boot ||
		!d.wasMeantToRun(*old) || !d.isMaintained() || d.refuses(m, *old) {
		return false
	}
	if d.next.Goal != kurabe.GoalRunning {
		return d.newestRefused()
	}
	follows := old.Role.Duty == kurabe.DutyFollow || old.Role.Duty == kurabe.DutyDetached
	if d.newestRefused() || follows && (d.group.Electing || d.primaryRestarts()) {
		return true
	}
	if !follows {
		return false // it is to start anew anyway
	}
	return slices.ContainsFunc(d.standbys(), func(o kurabe.Member) bool {
		a, r := d.assigned(o.ID), d.heardReport(o.ID)
		if o.ID == m.ID || d.fullStandbys[o.ID] || d.whyReplaced(o) != "" || r == nil || d.hasGivenUp(r) || a != nil && d.lacksNothing(*a) {
			return false
		}
		begun := a != nil && a.Boot == d.next.Boot
		return begun && !d.runsNewest(o.ID) || !begun && o.ID.Number() < m.ID.Number()
	})
}

// primaryRestarts says whether the primary is restarting with the newest content, or is about to.
func (d *draft) primaryRestarts() bool {
	m, _ := d.group.Member(d.group.Primary)
	w, r := d.assigned(m.ID), d.heardReport(m.ID)
	if w == nil || r == nil || d.hasGivenUp(r) {
		return false
	}
	return w.Boot < d.next.Boot && !d.isCurrent(*w) && !d.waitsForStandby(m, w) || w.Boot == d.next.Boot && !d.runsNewest(m.ID)
}

// floors are what a PostgreSQL that follows must not have less of than the one it follows
// (manual, "Administrator's Overview" of hot standby).
var floors = []string{"max_connections", "max_locks_per_transaction", "max_prepared_transactions", "max_wal_senders", "max_worker_processes"}

// lowers says whether a server with the one content may not follow a server with the other.
// What the engine's own default is, is not known here: it is taken for less.
func lowers(from, to kurabe.Assignment) bool {
	return slices.ContainsFunc(floors, func(name string) bool {
		before, after := from.Settings[name], to.Settings[name]
		if to.Engine != kurabe.Postgres || before == after {
			return false
		}
		a, errA := strconv.ParseInt(before, 10, 64)
		b, errB := strconv.ParseInt(after, 10, 64)
		return errA != nil || errB != nil || b < a
	})
}

// waitsForPrimary says whether a standby keeps its content for now: a limit that must not be lower
// than the primary's is lowered at the primary first, and the standby restarts once it has applied
// that change. Earlier it would have to start with the higher limits (engine/postgres). If other
// limits rise at the same time, the standby restarts nevertheless: with its present limits it can
// apply nothing any more.
func (d *draft) waitsForPrimary(m kurabe.Member, old *kurabe.Assignment) bool {
	if m.ID == d.group.Primary || old == nil || old.Boot >= d.next.Boot || !lowers(*old, d.next) || d.refuses(m, *old) {
		return false
	}
	w, r := d.assigned(d.group.Primary), d.reported(d.group.Primary)
	given := w != nil && r != nil && r.Role != nil && (w.Boot == d.next.Boot || d.isCurrent(*w)) && r.Boot == w.Boot && r.Done && r.Generation == w.Generation
	return !given || !lowers(d.next, *old) && !slices.Contains(r.Role.Replayed, m.ID)
}

// memberRole is the duty of a member, with the server that it follows.
func (d *draft) memberRole(m kurabe.Member, old *kurabe.Assignment, boot int64) *kurabe.Role {
	g := d.group
	if m.ID == g.Primary {
		return d.primaryRole(old, boot)
	}
	role := &kurabe.Role{Epoch: g.Epoch, Duty: kurabe.DutyFollow}
	if old != nil && old.Role != nil {
		role.StartSeq = old.Role.StartSeq
		// One in the sync set may be the only one that has a commit, in a moment: whatever becomes of
		// its own note of what it obeyed, there is no order by which it throws its data away.
		if !g.InSyncSet(m.ID) {
			role.RebuildSeq = d.rebuildSeq(m.ID, *old)
		}
	}
	primary, _ := g.Member(g.Primary)
	address := primary.ListensAt
	if address == "" {
		address = d.next.Address
	}
	role.Source = &kurabe.Source{ID: g.Primary, Host: primary.Host, Address: address, Port: d.primaryPort()}
	// One that wrote before is to be dead until there is somebody to follow.
	wrote := old != nil && (old.Role == nil || old.Role.Duty != kurabe.DutyFollow && old.Role.Duty != kurabe.DutyDetached)
	switch {
	case wrote && !d.primaryState().leading:
		role.Duty, role.Source = kurabe.DutyFenced, nil
	case g.Electing && old != nil:
		role.Duty, role.Source = kurabe.DutyDetached, nil
	}
	role.ServesReads = d.w.Spec.Cluster && role.Duty != kurabe.DutyFenced
	return role
}

// rebuildSeq orders that a follower be made anew for which the primary has given up log that
// it lacks, or whose server cannot start: it would never have every commit again. Its data
// goes first, so nobody may need that: the primary, which alone has the right to write, has
// all that was acknowledged, and this one is not in the sync set. An order is followed by another
// one only when it was obeyed; where the primary's word is of before that, it is copied once
// more than it need be.
func (d *draft) rebuildSeq(id kurabe.InstanceID, old kurabe.Assignment) int64 {
	seq, s, f := old.Role.RebuildSeq, d.primaryState(), d.reported(id)
	if !s.leading || !d.status.Applied.MultiAZ || d.next.Goal != kurabe.GoalRunning {
		return seq
	}
	if f == nil || f.Role == nil || f.Role.Writing || f.Generation != old.Generation || d.rebuilds(id) {
		return seq
	}
	switch {
	case f.Running && slices.Contains(s.report.Role.NeedRebuild, id): // else it may be in the making, and is left to that
		d.because(fmt.Sprintf("%s lacks log that %s has no more; it is made anew", id, d.group.Primary))
		d.tell(event.StandbyLacksLog)
	case d.dataIsBroken(f, old):
		d.status.RebuiltAt = d.w.Now
		d.because(fmt.Sprintf("the server of %s cannot start; it is made anew", id))
		d.tell(event.StandbyDamaged.With(f.Failure.Message))
	default:
		return seq
	}
	return max(seq, f.Role.RebuiltSeq) + 1
}

// rebuildTries is how often a follower's server must have refused to start before its data
// is taken for damaged, rebuildAgain how soon another one may be: a copy costs the primary,
// and helps once if it helps at all.
const (
	rebuildTries = 5
	rebuildAgain = time.Hour
)

// dataIsBroken says whether a follower's data keeps its server from starting, and not its address,
// a full disk, or a parameter with which the primary runs.
func (d *draft) dataIsBroken(r *kurabe.InstanceReport, a kurabe.Assignment) bool {
	if !refuses(r) {
		return false
	}
	return d.dataIsDamaged(r) || r.Failure.Kind == kurabe.FailureParameters && d.primaryRanWith(a) && d.mayRebuild()
}

// dataIsDamaged is dataIsBroken for a server whose parameters no other server has.
func (d *draft) dataIsDamaged(r *kurabe.InstanceReport) bool {
	return refuses(r) && r.Failure.Kind == kurabe.FailureOther && d.mayRebuild()
}

// refuses says whether a server has refused to start again and again.
func refuses(r *kurabe.InstanceReport) bool {
	f := r.Failure
	return f != nil && !r.Running && f.Attempts >= rebuildTries && (f.Step == kurabe.StepStart || f.Step == kurabe.StepWaitReady)
}

// mayRebuild says whether the copy before was long enough ago.
func (d *draft) mayRebuild() bool {
	again := d.status.RebuiltAt.Add(rebuildAgain)
	if d.w.Now.Before(again) {
		d.lookAgain(again)
		return false
	}
	return true
}

// isBeingRebuilt says whether a member has to be copied anew from the primary.
func (d *draft) isBeingRebuilt(id kurabe.InstanceID) bool {
	w := d.reported(d.group.Primary)
	return d.rebuilds(id) || w != nil && w.Role != nil && slices.Contains(w.Role.NeedRebuild, id)
}

// rebuilds says whether a member was told to throw its data away, and it is not known that
// it has. Whatever it seems to have, it may have lost in a moment.
func (d *draft) rebuilds(id kurabe.InstanceID) bool {
	a, r := d.assigned(id), d.reported(id)
	if a == nil || a.Role == nil || a.Role.RebuildSeq == 0 {
		return false
	}
	return r == nil || r.Role == nil || r.Role.RebuiltSeq < a.Role.RebuildSeq
}

// primaryPort is the port at which the primary listens now.
func (d *draft) primaryPort() int {
	if a := d.assigned(d.group.Primary); a != nil && d.waitsForStandby(kurabe.Member{ID: d.group.Primary}, a) {
		return a.Port
	}
	return d.next.Port
}

func (d *draft) primaryRole(old *kurabe.Assignment, boot int64) *kurabe.Role {
	g := d.group
	role := &kurabe.Role{Epoch: g.Epoch, Duty: kurabe.DutyWrite, WaitFor: d.waitFor(old)}
	switch {
	case g.ForcedPrimary != "" || g.Electing:
		role.Duty = kurabe.DutyFenced
	case g.SwitchoverTo != "":
		role.Duty, role.HandsOverToReplica = kurabe.DutyStepDown, true
	case g.HandoverTo != "":
		role.Duty = kurabe.DutyStepDown
	}
	for _, m := range g.Members {
		if m.ID == g.Primary || m.Leaving || !d.status.Applied.MultiAZ {
			continue
		}
		role.Followers = append(role.Followers, m.ID)
		// Also for one that commits do not wait for: it may be who they wait for next, and
		// has to find a primary that ends with its lease.
		role.Leased = role.Leased || d.onOtherHost(m) && len(role.WaitFor) > 0
	}
	role.RequireStandby = g.RequireStandby && len(role.WaitFor) > 0
	role.AllowUnprotectedClients = role.RequireStandby && len(g.SyncSet) == 0 && d.w.Spec.Engine.CopiesWhileCommitsWait()
	role.Readers = d.readers()
	role.WaitForOldLease = g.WaitForOldLease == g.Epoch
	role.Followers = append(role.Followers, d.w.Replicas...)
	role.StartSeq = d.startSeq(old, boot)
	return role
}

// startSeq orders a start that the primary may make although commits wait for others.
func (d *draft) startSeq(old *kurabe.Assignment, boot int64) int64 {
	if old == nil || old.Role == nil {
		return 0
	}
	seq, started := old.Role.StartSeq, int64(0)
	r := d.reported(d.group.Primary)
	if r != nil && r.Role != nil {
		started = r.Role.StartedSeq
	}
	again := old.Goal != kurabe.GoalRunning && d.next.Goal == kurabe.GoalRunning
	restart := boot > old.Boot
	dead := d.primaryState().dead && r != nil && !r.Running && d.next.Goal == kurabe.GoalRunning && d.group.SwitchoverTo == ""
	switch {
	case again || restart:
		d.status.StartOrders = 0 // another content, or a user's wish, may be what it lacked
		seq = max(seq, started+1)
	case (dead || d.chosenIsDown(old, started)) && seq <= started && d.mayOrderStart():
		seq = started + 1
	}
	return seq
}

// chosenIsDown says whether a server does not run that is to write, and nobody else may: it may
// have ended before it knew of its epoch. Where it waits for others from the beginning, it
// needs an order like any other primary.
func (d *draft) chosenIsDown(old *kurabe.Assignment, started int64) bool {
	r := d.reported(d.group.Primary)
	return len(d.group.SyncSet) == 0 && old.Role.Duty == kurabe.DutyWrite && d.next.Goal == kurabe.GoalRunning &&
		r != nil && r.Role != nil && r.Generation == old.Generation && !r.Running && old.Role.StartSeq <= started
}

// waitFor is whom commits wait for: those of the sync set that are to stay there, never anybody else
// whose answer would do then, or, while nobody has every commit, whoever is about to. Who is
// about to join stays here while it answers, so that an order does not change with each look.
// Where commits go on alone no more, there is always somebody.
func (d *draft) waitFor(old *kurabe.Assignment) []kurabe.InstanceID {
	g := d.group
	if !d.status.Applied.MultiAZ {
		return nil
	}
	r := d.reported(g.Primary)
	known := !d.primaryState().lost && r != nil && r.Role != nil && r.Role.Epoch == g.Epoch && r.Running && !r.Role.Unresponsive
	asked := func(id kurabe.InstanceID) bool {
		return old != nil && old.Role != nil && old.Role.Epoch == g.Epoch && slices.Contains(old.Role.WaitFor, id)
	}
	if len(g.SyncSet) > 0 {
		wait := slices.DeleteFunc(slices.Clone(g.SyncSet), func(id kurabe.InstanceID) bool {
			switch {
			case g.HandoverCandidate != "":
				return id != g.HandoverCandidate
			case known:
				return slices.Contains(r.Role.SilentFollowers, id) || d.leavingMembers[id]
			}
			return !asked(id) // of a primary that tells nothing nothing is known: the order stays
		})
		if len(wait) == 0 {
			return slices.Clone(g.SyncSet)
		}
		return wait
	}
	var wait []kurabe.InstanceID
	for _, m := range g.Members {
		if m.ID == g.Primary || m.Leaving {
			continue
		}
		f := d.heardReport(m.ID)
		joins := known && f != nil && f.Role != nil && f.Role.Following && !d.isBeingRebuilt(m.ID) && !d.fullStandbys[m.ID] && (slices.Contains(r.Role.NearlyCaughtUp, m.ID) || asked(m.ID)) && !slices.Contains(r.Role.SilentFollowers, m.ID)
		if joins || !known && asked(m.ID) {
			wait = append(wait, m.ID)
		}
	}
	if len(wait) == 0 && g.RequireStandby {
		for _, m := range d.standbys() {
			wait = append(wait, m.ID) // whoever comes
		}
	}
	slices.Sort(wait)
	return wait
}

// membersGo orders the end of every server but the primary's, and says whether nothing is
// left of them.
func (d *draft) membersGo() bool {
	gone := true
	for _, id := range slices.Sorted(maps.Keys(d.w.Members)) {
		a := *d.w.Members[id]
		if id == d.next.Instance {
			continue
		}
		if a.Goal != kurabe.GoalAbsent {
			a.Goal = kurabe.GoalAbsent
			a.Generation++
			d.result.Members = append(d.result.Members, a)
			gone = false
			continue
		}
		r := d.reported(id)
		gone = gone && r != nil && r.Absent && r.Generation == a.Generation
	}
	return gone
}
