package plan

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"kurabe"
	"kurabe/internal/event"
)

// autoStartAfter is how long an instance stays stopped before RDS starts it
// again (RDS user guide, "Stopping an Amazon RDS DB instance temporarily").
const autoStartAfter = 7 * 24 * time.Hour

// Next decides what one instance needs now.
func Next(w World) Result {
	d := begin(w)
	if w.Spec.Deleting != nil {
		return d.planDeletion()
	}
	d.correctAfterClockRollback()
	if !d.planSource() || !d.place() {
		return d.finish()
	}
	d.openWindow()
	d.planPower()
	d.planStorage()
	d.startAgain()
	d.planContent()
	if d.follows() {
		d.planReplica()
	} else {
		d.planMove()
	}
	d.tellVersion()
	d.readReport()
	d.planBackup() // a gap in the log makes its check due
	d.planTasks()
	d.noteSecurityGroups()
	return d.finish()
}

// begin copies what Next may change.
func begin(w World) *draft {
	d := &draft{w: w}
	if w.Status != nil {
		d.status = *w.Status
		d.status.PendingParameters = slices.Clone(w.Status.PendingParameters)
	} else {
		d.status = kurabe.InstanceStatus{ID: w.Spec.ID, State: kurabe.StateCreating, Action: kurabe.StateCreating, Since: w.Now, Source: w.Spec.Source}
	}
	d.status.SpecRevision = w.Spec.Revision
	if w.Assignment != nil {
		d.had = true
		d.next = *w.newest()
		d.next.Settings = maps.Clone(d.next.Settings)
		d.baseBoot = d.next.Boot
		// Who it is for and what it is for stay the primary's.
		d.next.Instance, d.next.Host, d.next.ListensAt = w.Assignment.Instance, w.Assignment.Host, w.Assignment.ListensAt
		d.next.Role, d.next.Origin, d.next.Generation, d.next.Goal = w.Assignment.Role, w.Assignment.Origin, w.Assignment.Generation, w.Assignment.Goal
	}
	if w.Group != nil {
		d.group = w.Group.Clone()
	}
	return d
}

// finish turns the draft into a result that holds changes only.
func (d *draft) finish() Result {
	d.noteBlockedMoves()
	if d.next.Generation > 0 || d.next.Host != "" {
		if old := d.assigned(d.next.Instance); old == nil || !sameContent(d.next, *old) {
			d.next.Generation++
			d.result.Assignment = &d.next
		}
	}
	if d.group != nil && (d.w.Group == nil || !reflect.DeepEqual(d.group, d.w.Group)) {
		d.result.Group = d.group
	}
	if d.w.Status == nil || d.status.State != d.w.Status.State {
		d.status.Since = d.w.Now
	}
	if d.w.Status == nil || !reflect.DeepEqual(d.status, *d.w.Status) {
		d.result.Status = &d.status
	}
	return d.result
}

func sameContent(a, b kurabe.Assignment) bool {
	a.Generation, b.Generation = 0, 0
	return reflect.DeepEqual(a, b)
}

// planDeletion asks the host to leave nothing, then ends the records.
func (d *draft) planDeletion() Result {
	d.status.State, d.status.Action = kurabe.StateDeleting, kurabe.StateDeleting
	if !d.had {
		d.because("it was never assigned to a host")
		return d.gone()
	}
	if d.next.Goal != kurabe.GoalAbsent && !d.mayGo() {
		return d.finish()
	}
	if d.next.Goal != kurabe.GoalAbsent {
		d.because("the user asked for its deletion")
		d.next.Goal = kurabe.GoalAbsent
		d.membersGo()
		return d.finish()
	}
	r := d.w.Report
	gone := r != nil && r.Absent && r.Generation == d.next.Generation && d.membersGo()
	if gone && !d.w.Spec.Deleting.KeepBackups && len(d.w.Backups) > 0 {
		// An instance that is gone and has backups means that they are to be kept.
		d.because("its automated backups are being removed")
		return d.finish()
	}
	if gone {
		d.because("the host has nothing left of it")
		return d.gone()
	}
	d.because("waiting for host " + string(d.next.Host) + " to remove it")
	return d.finish()
}

// mayGo says whether every snapshot that needs the data has it. A final snapshot
// that failed keeps the instance: the user asked for its data to be kept.
func (d *draft) mayGo() bool {
	id := d.w.Spec.Deleting.FinalSnapshot
	switch {
	case id != "" && d.w.Final != nil && d.w.Final.State == kurabe.SnapshotFailed:
		d.status.State, d.status.Action = kurabe.StateFailed, ""
		d.status.Reason = "The final snapshot failed, so nothing was deleted: " + d.w.Final.Reason + ". Delete the instance again, with another final snapshot or without one."
		d.because(d.status.Reason)
		return false
	case id != "" && (d.w.Final == nil || d.w.Final.State != kurabe.SnapshotAvailable):
		d.because("waiting for the final snapshot")
		return false
	case d.w.BackingUp:
		d.because("waiting for a snapshot that is being taken of it")
		return false
	}
	return true
}

func (d *draft) gone() Result {
	d.tell(event.Deleted)
	d.result.Gone = true
	d.result.Status, d.result.Assignment, d.result.Group, d.result.Members = nil, nil, nil, nil
	return d.result
}

// openWindow puts what waits for the maintenance window in force once it opens.
func (d *draft) openWindow() {
	s := d.w.Spec
	if (s.Next == nil && s.NextName == "") || d.status.AppliedNext >= s.NextSeq {
		return
	}
	w, err := kurabe.ParseMaintenanceWindow(s.MaintenanceWindow)
	if err != nil {
		d.because("the maintenance window cannot be read: " + err.Error())
		return
	}
	// The window that was open when the user asked counts: RDS applies what is
	// put off during a window in that window too.
	_, open, next := w.Next(d.w.Now)
	if !open {
		d.because("modifications wait for the maintenance window at " + next.Format(time.RFC3339))
		d.lookAgain(next)
		return
	}
	d.because("the maintenance window is open")
	d.tell(event.WindowBegun)
	d.status.Maintaining = true
	d.status.AppliedNext = s.NextSeq
}

// planPower follows the user's wish to run or stop, and RDS's seven days.
func (d *draft) planPower() {
	p := d.w.Spec.Power
	if p.Seq != d.status.PowerSeq {
		d.status.PowerSeq, d.status.AutoStarted = p.Seq, false
		d.status.StoppedAt = time.Time{}
		if p.Stopped {
			d.status.StoppedAt = p.At
			d.status.Action = kurabe.StateStopping
		} else if d.next.Goal == kurabe.GoalStopped {
			d.status.Action = kurabe.StateStarting
		}
	}
	stopped := p.Stopped && !d.status.AutoStarted
	if stopped && !d.w.Now.Before(d.status.StoppedAt.Add(autoStartAfter)) {
		d.tell(event.StartedAfterSevenDays)
		d.status.AutoStarted, d.status.Action = true, kurabe.StateStarting
		stopped = false
	}
	if stopped && d.w.BackingUp && d.next.Goal == kurabe.GoalRunning {
		d.because("the user stopped it; waiting for a snapshot that is being taken of it")
		return
	}
	if stopped {
		d.because("the user stopped it")
		d.lookAgain(d.status.StoppedAt.Add(autoStartAfter))
		d.next.Goal = kurabe.GoalStopped
		return
	}
	d.next.Goal = kurabe.GoalRunning
}

// startAgain raises Boot when a stopped server is to run again, so that it
// starts with every parameter as it is wanted now. Servers of a group that were stopped for
// want of room start as they were.
func (d *draft) startAgain() {
	d.stoppedForDisk = d.isStoppedForDisk()
	if d.had && d.w.Assignment.Goal == kurabe.GoalStopped && d.next.Goal == kurabe.GoalRunning && !d.stoppedForDisk {
		d.because("it is to run again")
		d.next.Boot++
	}
}
