package plan

import (
	"fmt"
	"maps"
	"slices"

	"kurabe"
)

// noteRefusal remembers a content that a server of a group could not start with, until one
// runs with it, or the writer lacks nothing any more. Its report alone would not do: a host
// that is lost says nothing, and a server that is made anew has not tried again.
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
		if m.ID == d.group.Primary || !d.proven(*a) { // else it is not the content that keeps it from starting
			d.refuse(m, d.heard(m.ID).Failure)
		}
	}
	switch {
	case d.newestRefused():
		d.takeBack(*w)
	case w.Boot == d.next.Boot || d.current(*w):
		d.status.FailedRollout = kurabe.FailedRollout{}
	}
}

// proven says whether the writer has run with the same content as a follower has.
func (d *draft) proven(a kurabe.Assignment) bool {
	w, ran := d.assigned(d.group.Primary), d.reported(d.group.Primary)
	return w != nil && ran != nil && ran.Boot == w.Boot && (w.Boot == a.Boot || alike(*w, a))
}

// startedWithNewest says whether a member has come up with the newest content.
func (d *draft) startedWithNewest(m kurabe.Member) bool {
	a, r := d.assigned(m.ID), d.heard(m.ID)
	return a != nil && r != nil && a.Boot == d.next.Boot && r.Running && r.Boot == a.Boot && r.Role != nil && (r.Role.Following || r.Role.IsPrimary)
}

// refuse notes that a server has refused the newest content, and tells it. A failover that
// the user has asked for is not left over for when nobody expects it any more.
func (d *draft) refuse(m kurabe.Member, f *kurabe.Failure) {
	d.status.FailedRollout = kurabe.FailedRollout{Boot: d.next.Boot, Kind: f.Kind, Message: f.Message}
	d.because(fmt.Sprintf("%s cannot start with what is new; no other server is restarted with it", m.ID))
	if m.ID != d.group.Primary { // of whose state the status tells
		d.status.Action = ""
		d.event("KURABE-EVENT-0043", d.refusal(), "failure") // RDS's 0035 is of a DB instance that serves no more
	}
	if d.w.Spec.FailoverSeq > d.status.FailoverSeq {
		d.status.FailoverSeq = d.w.Spec.FailoverSeq
		d.event("KURABE-EVENT-0044", "Abandoning the failover that was asked for: a standby cannot start with what was to take effect with it", "failover")
	}
}

// refusal is what a refusal is to users.
func (d *draft) refusal() string {
	what, cure := "with what was changed", "take the change back"
	if d.status.FailedRollout.Kind == kurabe.FailureParameters {
		what, cure = "with the DB instance's parameters", "change the DB parameter group"
	}
	return fmt.Sprintf("A standby cannot start %s; the DB instance goes on with what it had. To end this, %s. The engine says: %s", what, cure, d.status.FailedRollout.Message)
}

// tellRefused adds to a DB instance that serves that it lacks what was asked for. It stays
// available: that is what clients find, and what a snapshot needs.
func (d *draft) tellRefused() {
	if d.baseRefused() && d.next.Goal == kurabe.GoalRunning {
		d.status.Reason = d.refusal()
	}
	d.tellRests()
}

// takeBack orders again what the writer runs with, where its parameters are all that it lacks:
// whoever could not start does so then, and what the user has set waits for the next reboot.
func (d *draft) takeBack(w kurabe.Assignment) {
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
	if d.status.State == kurabe.StateIncompatibleParameters { // of a writer that has been followed by another one
		d.status.State = kurabe.StateRebooting
	}
	d.because(fmt.Sprintf("%v are taken back: a server cannot start with them", names))
	d.event("KURABE-EVENT-0031", fmt.Sprintf("The DB instance goes on with the parameters that it had. What a server could not start with waits for a reboot again: %d parameters. Change the DB parameter group before that", len(names)), "notification")
}

// mayStart says whether a server that does not come up may do so with other parameters.
func (d *draft) mayStart() bool {
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
	r := d.heard(m.ID)
	return r != nil && r.Generation == a.Generation && refusesContent(r, a)
}

// refusesContent says whether a server has refused again and again to start, and not because
// its disk is full, which is its own.
func refusesContent(r *kurabe.InstanceReport, a kurabe.Assignment) bool {
	f := r.Failure
	return f != nil && !r.Running && (f.Attempts >= startTries || refusesOrder(r, a)) && f.Kind != kurabe.FailureStorage && slices.Contains(contentSteps, f.Step)
}

// refusesOrder says whether the writer of a group has refused its settings. Once is enough: each
// start is ordered, and with the next order its host begins to count anew.
func refusesOrder(r *kurabe.InstanceReport, a kurabe.Assignment) bool {
	f := r.Failure
	return f != nil && !r.Running && f.Kind == kurabe.FailureParameters && a.Role != nil && a.Role.Duty == kurabe.DutyWrite
}

// current says whether a server lacks nothing of the newest content although that was ordered
// after it: a change was taken back before it had restarted for it.
func (d *draft) current(old kurabe.Assignment) bool {
	if old.Boot >= d.next.Boot || d.restartsAtOnce || !d.ran(old) || !d.goesOn() {
		return false
	}
	if newest := d.w.newest(); newest.Boot == d.next.Boot {
		return alike(old, *newest) // what has changed since takes no restart
	}
	return alike(old, d.next)
}

// lacksNothing says whether a member is current beside a writer that is. Where the writer has
// restarted, the others do.
func (d *draft) lacksNothing(old kurabe.Assignment) bool {
	w := d.assigned(d.group.Primary)
	return w != nil && d.current(*w) && d.current(old)
}

// behind says whether a member is to restart yet for what was ordered before.
func (d *draft) behind(m kurabe.Member) bool {
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

// kept is what a server has that waits to be restarted, with what takes no restart: it may
// wait for long.
func (d *draft) kept(old kurabe.Assignment) kurabe.Assignment {
	a := old
	a.Settings, a.Goal = maps.Clone(old.Settings), d.next.Goal
	a.Name, a.Password, a.LogSince, a.Limits.StorageBytes = d.next.Name, d.next.Password, d.next.LogSince, d.next.Limits.StorageBytes
	return a
}
