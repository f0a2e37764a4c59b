package plan

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"kurabe"
	"kurabe/internal/event"
	"kurabe/internal/plan/tell"
)

// startTries is how often a server may refuse to start before the user is told
// that its parameters (or its network) do not fit.
const startTries = 3

// readReport turns what the host says into what users are told. What a host said that is
// not heard any more may be true no longer.
func (d *draft) readReport() {
	if d.hostIsSilent() {
		return
	}
	r := d.w.Report
	if r == nil || !d.had || r.Instance.Owner() != d.w.Spec.ID {
		d.status.State = d.transition(kurabe.StateCreating)
		return
	}
	if r.Instance == d.next.Instance {
		d.countCrashes(r) // of one that was just deposed the failover's events tell
	}
	d.tellUnresponsive(r)
	d.tellLostMeasurements(r)
	for _, id := range slices.Sorted(maps.Keys(d.w.Reports)) {
		d.tellLostMeasurements(d.w.Reports[id])
	}
	if !r.CertificateExpiresAt.IsZero() {
		d.status.CertificateExpiresAt = r.CertificateExpiresAt
	}
	changed := d.next.Instance != d.w.Assignment.Instance || !sameContent(d.next, *d.w.Assignment)
	switch {
	case changed || r.Generation != d.w.Assignment.Generation:
		d.status.State = d.transition(d.status.State)
	case r.Done && d.unfinished():
		d.status.State = d.transition(d.status.State)
	case r.Done:
		d.done(r)
		d.tellRefused()
	case r.Failure != nil && (r.Failure.Attempts >= startTries || refusesOrder(r, *d.w.Assignment)) && r.Failure.Kind == kurabe.FailureParameters:
		d.incompatible(kurabe.StateIncompatibleParameters, event.IncompatibleParameters,
			"The database cannot start with its parameters; change the DB parameter group. The engine says: "+r.Failure.Message)
	case r.Failure.Final():
		d.unrestorable(r.Failure)
	case r.Failure != nil && r.Failure.Attempts >= startTries && r.Failure.Kind == kurabe.FailureNetwork:
		d.incompatible(kurabe.StateIncompatibleNetwork, event.IncompatibleNetwork,
			fmt.Sprintf("The database cannot listen on %s port %d: %s", d.next.Address, d.next.Port, r.Failure.Message))
	default:
		d.working(r)
	}
}

// unfinished says whether other servers still have to do what the user asked for. A
// standby that is lost later does not make it so.
func (d *draft) unfinished() bool {
	if d.group == nil {
		young := d.follows() && d.status.Replication == "" // it has never followed whom it follows
		return (d.status.Converting || young || d.switching()) && d.next.Goal == kurabe.GoalRunning
	}
	if d.next.Goal != kurabe.GoalRunning {
		return slices.ContainsFunc(d.group.Members, func(m kurabe.Member) bool { r := d.heardReport(m.ID); return r != nil && r.Running })
	}
	behind := !d.baseRefused() && slices.ContainsFunc(d.group.Members, d.needsRestart)
	young := d.w.Spec.Cluster && d.status.AvailableAt.IsZero() && len(d.group.SyncSet) < d.standbysWanted()
	return young || d.status.Converting || d.status.Promoting || d.group.HandoverTo != "" || d.group.SwitchoverTo != "" || !d.status.SwitchBy.IsZero() || behind
}

// transition is the state to show while a generation is under way.
func (d *draft) transition(otherwise kurabe.State) kurabe.State {
	if d.status.Action != "" {
		return d.status.Action
	}
	return otherwise
}

// working shows a host at work on the generation in force.
func (d *draft) working(r *kurabe.InstanceReport) {
	if f := r.Failure; f != nil {
		d.status.Reason = f.Step + ": " + f.Message
		d.because(d.status.Reason)
		if d.isTold(f) && d.status.SeenFailure != tell.Gist(f) {
			d.status.SeenFailure = tell.Gist(f)
			d.tell(event.StepFails.With(f.Step, f.Message))
		}
	}
	// A process that does not serve yet was started again: shown as available, it
	// would turn clients away.
	if d.status.Action == "" && d.next.Goal == kurabe.GoalRunning && !r.Serving {
		d.status.Action = kurabe.StateRebooting
	}
	d.status.State = d.transition(d.status.State)
}

// incompatible is a state that only the user can end. The words of its kind are of a state
// and a reason.
func (d *draft) incompatible(state kurabe.State, kind event.Kind, message string) {
	if d.setIncompatible(state, message) {
		d.tell(kind.With(state, message))
	}
}

// setIncompatible puts the instance into a state that only the user can end, and says whether that
// is new.
func (d *draft) setIncompatible(state kurabe.State, why string) bool {
	d.status.Reason = why
	d.because(why)
	entered := d.status.State != state
	d.status.State = state
	return entered
}

// done: the assignment is true of the database.
func (d *draft) done(r *kurabe.InstanceReport) {
	action := d.status.Action
	d.status.Action, d.status.Reason, d.status.SeenFailure = "", "", ""
	if d.next.Goal == kurabe.GoalStopped {
		d.doneStopped()
		return
	}
	d.status.State = kurabe.StateAvailable
	if d.w.BackingUp {
		d.status.State = kurabe.StateBackingUp
	}
	d.status.Address, d.status.Port = d.next.Address, d.next.Port
	if d.status.ParameterApply == "applying" {
		d.status.ParameterApply = "in-sync"
	}
	if d.status.AvailableAt.IsZero() {
		d.status.AvailableAt = d.w.Now
		d.status.PasswordSeq = d.next.Password.Seq
		d.tell(event.Created)
		d.announceOrigin()
	}
	if d.follows() {
		d.status.PasswordSeq = d.next.Password.Seq // told of where it was changed
	}
	if d.status.PasswordSeq != d.next.Password.Seq {
		d.status.PasswordSeq = d.next.Password.Seq
		d.tell(event.NewPassword)
	}
	switch action {
	case kurabe.StateRebooting:
		d.tell(event.Restarted)
	case kurabe.StateStarting:
		d.tell(event.Started)
	case kurabe.StateUpgrading:
		d.tellPatched(d.status.Applied.EngineVersion)
	}
	d.tellChanged()
	d.endWindow()
}

// endWindow tells that what the maintenance window was opened for is in force.
func (d *draft) endWindow() {
	if d.status.Maintaining {
		d.status.Maintaining = false
		d.tell(event.WindowDone)
	}
}

// announceOrigin tells where the data of a new instance comes from.
func (d *draft) announceOrigin() {
	switch o := d.w.Spec.Origin; {
	case o == nil:
	case o.Point != nil:
		d.tell(event.RestoredToPoint.With(o.Point.Name, d.next.Name).And(", as of " + o.Point.At.UTC().Format(time.RFC3339)))
	default:
		d.tell(event.RestoredFromSnapshot.With(o.Name))
	}
}

func (d *draft) doneStopped() {
	if d.status.StorageAlarm >= storageFull {
		d.status.State = kurabe.StateStorageFull
		if d.status.Storage.FullGiB == 0 {
			d.status.Reason = d.w.Report.OutOfRoom()
		}
		return
	}
	if d.status.State != kurabe.StateStopped {
		d.tell(event.Stopped)
	}
	d.status.State = kurabe.StateStopped
	d.tellChanged()
	d.endWindow()
}

// muteTold is for how long the only server of an instance does not answer when users are told.
const muteTold = 15 * time.Second

// tellUnresponsive tells once that it does not answer, and once that it does again, be it after a
// restart. A group has somebody to take its place.
func (d *draft) tellUnresponsive(r *kurabe.InstanceReport) {
	switch seen := d.status.SeenUnresponsive; {
	case d.group != nil || d.next.Goal != kurabe.GoalRunning:
		d.status.SeenUnresponsive = time.Time{}
	case seen.IsZero() && !r.UnresponsiveSince.IsZero() && d.w.Now.Before(r.UnresponsiveSince.Add(muteTold)):
		d.lookAgain(r.UnresponsiveSince.Add(muteTold))
	case seen.IsZero() && !r.UnresponsiveSince.IsZero():
		d.status.SeenUnresponsive = r.UnresponsiveSince
		d.tell(event.Unresponsive.With(r.UnresponsiveSince.Format(time.RFC3339)))
	case !seen.IsZero() && r.Responsive:
		d.status.SeenUnresponsive = time.Time{}
		d.tell(event.ResponsiveAgain.With(seen.Format(time.RFC3339)))
	}
}

// tellLostMeasurements tells once of each loss of a host.
func (d *draft) tellLostMeasurements(r *kurabe.InstanceReport) {
	seen := d.status.SeenLost[r.Host]
	newest := seen
	for _, l := range r.Lost {
		if l.At.After(seen) {
			d.tell(event.MetricsLost.With(r.Host, l.What, l.At.UTC().Format(time.RFC3339), l.Reason))
			if l.At.After(newest) {
				newest = l.At
			}
		}
	}
	if newest.After(seen) {
		told := maps.Clone(d.status.SeenLost)
		if told == nil {
			told = map[kurabe.HostID]time.Time{}
		}
		told[r.Host] = newest
		d.status.SeenLost = told
	}
}

// countCrashes announces what happened since the last look.
func (d *draft) countCrashes(r *kurabe.InstanceReport) {
	if r.OOMKills > d.status.SeenOOMKills {
		d.tell(event.Shutdown.And(fmt.Sprintf(": it exceeded the %s of its class %s and the kernel ended a process of it",
			kurabe.FormatBytes(d.next.Limits.MemoryBytes), d.status.Applied.Class)))
		d.because("the memory limit was exceeded")
	}
	d.status.SeenOOMKills = r.OOMKills
	if r.Crashes > d.status.SeenCrashes {
		why := ": the database process ended unexpectedly and is restarted"
		if r.LastCrash != "" {
			why += ". Its last words: " + r.LastCrash
		}
		d.tell(event.Shutdown.And(why))
		d.because("the database process crashed")
		if d.status.Action == "" && d.next.Goal == kurabe.GoalRunning {
			d.status.Action = kurabe.StateRebooting
		}
	}
	d.status.SeenCrashes = r.Crashes
}

// unrestorable tells of an instance whose data is damaged where it is restored from.
// The host does not try again, so what is left to do is the user's.
func (d *draft) unrestorable(f *kurabe.Failure) {
	what := "the snapshot that it is restored from is damaged"
	if f.Kind == kurabe.FailureLog {
		what = "the log that it is to be restored with is damaged or incomplete"
	}
	if kind := event.Unrestorable.With(what, f.Message); d.setIncompatible(kurabe.StateIncompatibleRestore, kind.Text) {
		d.tell(kind)
	}
}
