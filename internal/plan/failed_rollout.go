package plan

import (
	"fmt"
	"maps"
	"slices"

	"kurabe"
	"kurabe/internal/event"
)

// noteRefusal remembers a content with which a server of a group could not start, until a server
// runs with it or the primary needs it no more. The report alone does not suffice: a lost host
// says nothing, and a rebuilt server has not tried again.
func (d *draft) noteRefusal() {
	w := d.assigned(d.group.Primary)
	if d.stoppedForDisk && d.next.Goal != kurabe.GoalRunning {
		return // nobody tries anything meanwhile
	}
	if w == nil || !d.status.Applied.MultiAZ || d.next.Goal != kurabe.GoalRunning || slices.ContainsFunc(d.group.Members, d.startedWithNewest) {
		d.status.FailedRollout = kurabe.FailedRollout{}
		return
	}
	for _, m := range d.group.Members {
		a := d.assigned(m.ID)
		if m.Leaving || a == nil || a.Boot != d.next.Boot || !d.refuses(m, *a) || d.newestRefused() {
			continue
		}
		if m.ID == d.group.Primary || !d.primaryRanWith(*a) { // else it is not the content that keeps it from starting
			d.noteRefused(m, d.heardReport(m.ID).Failure)
		}
	}
	switch {
	case d.newestRefused():
		d.revertParameters(*w)
	case w.Boot == d.next.Boot || d.isCurrent(*w):
		d.status.FailedRollout = kurabe.FailedRollout{}
	}
}

// primaryRanWith says whether the primary has run with the same content as this assignment.
func (d *draft) primaryRanWith(a kurabe.Assignment) bool {
	w, ran := d.assigned(d.group.Primary), d.reported(d.group.Primary)
	return w != nil && ran != nil && ran.Boot == w.Boot && (w.Boot == a.Boot || alike(*w, a))
}

// startedWithNewest says whether a member has come up with the newest content.
func (d *draft) startedWithNewest(m kurabe.Member) bool {
	a, r := d.assigned(m.ID), d.heardReport(m.ID)
	return a != nil && r != nil && a.Boot == d.next.Boot && r.Running && r.Boot == a.Boot && r.Role != nil && (r.Role.Following || r.Role.IsPrimary)
}

// noteRefused records that a server could not start with the newest content, and writes the event.
// It also drops a requested failover, which would otherwise come at a time when nobody expects it.
func (d *draft) noteRefused(m kurabe.Member, f *kurabe.Failure) {
	d.status.FailedRollout = kurabe.FailedRollout{Boot: d.next.Boot, Kind: f.Kind, Message: f.Message}
	d.because(fmt.Sprintf("%s cannot start with what is new; no other server is restarted with it", m.ID))
	if m.ID != d.group.Primary { // of whose state the status tells
		d.status.Action = ""
		d.tell(event.RolloutFailed.With(d.refusal())) // RDS's 0035 is of a DB instance that serves no more
	}
	if d.w.Spec.FailoverSeq > d.status.FailoverSeq {
		d.status.FailoverSeq = d.w.Spec.FailoverSeq
		d.tell(event.RolloutAbandoned)
	}
}

// refusal is the text of a failed rollout for users.
func (d *draft) refusal() string {
	what, cure := "with what was changed", "take the change back"
	if d.status.FailedRollout.Kind == kurabe.FailureParameters {
		what, cure = "with the DB instance's parameters", "change the DB parameter group"
	}
	return fmt.Sprintf("A standby cannot start %s; the DB instance goes on with what it had. To end this, %s. The engine says: %s", what, cure, d.status.FailedRollout.Message)
}

// tellRefused adds the failed rollout to the status of an instance that serves. The instance stays
// available: clients find it so, and a snapshot needs it so.
func (d *draft) tellRefused() {
	if d.baseRefused() && d.next.Goal == kurabe.GoalRunning {
		d.status.Reason = d.refusal()
	}
	d.tellStoppedStandbys()
}

// revertParameters orders the primary's parameters again when the newest content differs from them
// in nothing else. Servers that could not start then start, and the user's parameters wait for the
// next reboot.
func (d *draft) revertParameters(w kurabe.Assignment) {
	n := &d.next
	mended := *n
	mended.Settings = w.Settings
	names := differing(n.Settings, w.Settings)
	if w.Boot >= n.Boot || len(names) == 0 || !alike(w, mended) {
		return
	}
	n.Settings = maps.Clone(w.Settings)
	n.Boot++
	d.setPending(names, false)
	if d.status.State == kurabe.StateIncompatibleParameters { // of a primary that has been followed by another one
		d.status.State = kurabe.StateRebooting
	}
	d.because(fmt.Sprintf("%v are taken back: a server cannot start with them", names))
	d.tell(event.ParametersUndone.With(len(names)))
}

// mayStartWithOthers says whether a server that does not start may start with other parameters.
func (d *draft) mayStartWithOthers() bool {
	r, a := d.w.Report, d.w.Assignment
	if r != nil && a != nil && a.Role == nil && r.Generation == a.Generation && !r.Running && r.Failure != nil && slices.Contains(contentSteps, r.Failure.Step) {
		return true // whatever it says of why
	}
	return d.status.State == kurabe.StateIncompatibleParameters || d.newestRefused() || r != nil && a != nil && r.Generation == a.Generation && refusesOrder(r, *a)
}

// newestRefused says whether a server could not start with the newest content, and baseRefused
// with what that was when the plan began.
func (d *draft) newestRefused() bool {
	return d.status.FailedRollout.Boot > 0 && d.status.FailedRollout.Boot == d.next.Boot
}

func (d *draft) baseRefused() bool {
	return d.status.FailedRollout.Boot > 0 && d.status.FailedRollout.Boot == d.baseBoot
}

// contentSteps are those that can fail by what a server is to start with, between the end of
// the process before and its service.
var contentSteps = []string{"write-settings", "set-limits", kurabe.StepStart, kurabe.StepWaitReady}

// refuses says whether a member cannot start with what it was told.
func (d *draft) refuses(m kurabe.Member, a kurabe.Assignment) bool {
	r := d.heardReport(m.ID)
	return r != nil && r.Generation == a.Generation && refusesContent(r, a)
}

// refusesContent says whether a server has refused again and again to start, and not because
// its disk is full, which is its own.
func refusesContent(r *kurabe.InstanceReport, a kurabe.Assignment) bool {
	f := r.Failure
	return f != nil && !r.Running && (f.Attempts >= startTries || refusesOrder(r, a)) && f.Kind != kurabe.FailureStorage && slices.Contains(contentSteps, f.Step)
}

// refusesOrder says whether the primary of a group has refused its settings. Once is enough: each
// start is ordered, and with the next order its host begins to count anew.
func refusesOrder(r *kurabe.InstanceReport, a kurabe.Assignment) bool {
	f := r.Failure
	return f != nil && !r.Running && f.Kind == kurabe.FailureParameters && a.Role != nil && a.Role.Duty == kurabe.DutyWrite
}

// isCurrent says whether a server needs no restart although its content is older than the newest:
// a change was reverted before the server had restarted for it.
func (d *draft) isCurrent(old kurabe.Assignment) bool {
	if old.Boot >= d.next.Boot || d.restartsAtOnce || !d.wasMeantToRun(old) || !d.isMaintained() {
		return false
	}
	if newest := d.w.newest(); newest.Boot == d.next.Boot {
		return alike(old, *newest) // what has changed since takes no restart
	}
	return alike(old, d.next)
}

// lacksNothing says whether a member and the primary both need no restart. If the primary has
// restarted, the members do too.
func (d *draft) lacksNothing(old kurabe.Assignment) bool {
	w := d.assigned(d.group.Primary)
	return w != nil && d.isCurrent(*w) && d.isCurrent(old)
}

// needsRestart says whether a member still has to restart for an earlier order.
func (d *draft) needsRestart(m kurabe.Member) bool {
	a, w, newest := d.assigned(m.ID), d.assigned(d.group.Primary), d.w.newest()
	if m.Leaving || d.fullStandbys[m.ID] || a == nil || w == nil || a.Boot >= d.baseBoot {
		return false
	}
	return w.Boot >= newest.Boot || !alike(*w, *newest) || !alike(*a, *newest)
}

// alike says whether two contents are the same in what takes a restart, as far as is known of
// parameters.
func alike(a, b kurabe.Assignment) bool {
	a.Limits.StorageBytes = b.Limits.StorageBytes
	return a.Version == b.Version && a.Port == b.Port && a.Limits == b.Limits && a.Log == b.Log && a.Binlog == b.Binlog && maps.Equal(a.Settings, b.Settings)
}

// withoutRestart is a server's present content with those changes of the newest that need no
// restart. The server may wait for its restart for long.
func (d *draft) withoutRestart(old kurabe.Assignment) kurabe.Assignment {
	a := old
	a.Settings, a.Goal = maps.Clone(old.Settings), d.next.Goal
	a.Name, a.Password, a.LogSince, a.Limits.StorageBytes = d.next.Name, d.next.Password, d.next.LogSince, d.next.Limits.StorageBytes
	return a
}
