package backup

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"time"

	"kurabe"
	"kurabe/internal/event"
)

// Tries is how often a host may fail to take a snapshot before it is
// given up: what hinders it (a full disk, a damaged file) is for a person.
const Tries = 5

// World is everything that may influence the plan of one snapshot.
// Records are read, never changed.
type World struct {
	Now        time.Time
	Spec       *kurabe.SnapshotSpec
	Status     *kurabe.SnapshotStatus     // nil: never planned
	Assignment *kurabe.SnapshotAssignment // nil: never assigned
	Report     *kurabe.SnapshotReport     // nil: the host has not spoken
	// Former are the orders to hosts that it is not made on any more, with what they report.
	Former []FormerOrder
	// Instance is what the host of the source instance was told, nil when the
	// instance is gone or was never assigned.
	Instance *kurabe.Assignment
	// Group is that of the source instance, nil for none; Reports are of its servers, and
	// ClosedHosts says of hosts why nothing new is to be asked of them.
	Group       *kurabe.Group
	Reports     map[kurabe.InstanceID]*kurabe.InstanceReport
	ClosedHosts map[kurabe.HostID]string
	// Clones has the hosts on which files can be cloned.
	Clones map[kurabe.HostID]bool
	// From is the status of the snapshot to copy, nil when it is gone.
	From *kurabe.SnapshotStatus
	// Hosts are those that report, for an imported snapshot: none has its files more
	// than another.
	Hosts []kurabe.HostReport
	// Retention is what an automated snapshot is kept for; nil for a manual one.
	Retention *Retention
	Verify    Verify
	// Damage is what the newest restore that failed has met in the snapshot; nil for
	// nothing.
	Damage *kurabe.Failure
	// Readers says who still reads the files: restores and copies under way.
	Readers []string
}

// Result is what must change; nil fields stay as they are.
type Result struct {
	Assignment *kurabe.SnapshotAssignment
	// Former is the order that is called off, FormerGone the hosts that have nothing left of one.
	Former     *kurabe.SnapshotAssignment
	FormerGone []kurabe.HostID
	Status     *kurabe.SnapshotStatus
	Events     []kurabe.Event
	Gone       bool
	Reasons    []string
	// LookAgain is when time alone can change the plan; zero: never.
	LookAgain time.Time
}

// draft is a plan in the making.
type draft struct {
	w      World
	status kurabe.SnapshotStatus
	next   kurabe.SnapshotAssignment
	had    bool
	result Result
}

// Next decides what one snapshot needs now.
func Next(w World) Result {
	d := &draft{w: w, had: w.Assignment != nil}
	if d.had {
		d.next = *w.Assignment
	}
	if w.Status != nil {
		d.status = *w.Status
	} else {
		d.status = kurabe.SnapshotStatus{ID: w.Spec.ID, State: kurabe.SnapshotCreating, Since: w.Now}
		d.started()
	}
	d.status.SpecRevision = w.Spec.Revision
	d.sweepFormer()
	switch {
	case w.Spec.Deleting != nil, d.expired():
		d.remove()
	case d.status.State == kurabe.SnapshotFailed && !d.found():
		d.because("it failed: " + d.status.Reason)
	default:
		d.take()
	}
	return d.finish()
}

func (d *draft) because(reason string) { d.result.Reasons = append(d.result.Reasons, reason) }

// tell writes an event of the snapshot.
func (d *draft) tell(kind event.Kind) {
	d.result.Events = append(d.result.Events, kind.Told(d.w.Now, d.w.Spec.Name, string(d.w.Spec.ID)))
}

// tellInstance writes an event in the history of the instance too.
func (d *draft) tellInstance(kind event.Kind) {
	s := d.w.Spec.Source
	d.result.Events = append(d.result.Events, kind.Told(d.w.Now, s.Name, string(s.Instance)))
}

// started announces the beginning.
func (d *draft) started() {
	switch s := d.w.Spec; {
	case d.imported():
		d.tell(event.ImportBegun)
	case s.CopyOf != "":
		d.status.State = kurabe.SnapshotCopying
		d.tell(event.CopyBegun.With(s.CopyOfName))
	case s.Kind == kurabe.SnapshotAutomated:
		d.tell(event.AutomatedBegun)
		d.tellInstance(event.BackupBegun)
	default:
		d.tell(event.ManualBegun)
		d.tellInstance(event.BackupBegun)
	}
}

// imported says that nothing is made: the snapshot is there, or will never be. Copies
// of such a one are made like any other.
func (d *draft) imported() bool { return d.w.Spec.Imported && d.w.Spec.CopyOf == "" }

// found says that a complete snapshot which had been lost is there again: its disk
// was mounted late, say.
func (d *draft) found() bool {
	r := d.w.Report
	return d.had && d.next.Goal == kurabe.SnapshotPresent && r != nil && r.Done && r.Generation == d.next.Generation
}

// WriterMoved is why a snapshot fails that was not taken when a failover had another host
// write.
const WriterMoved = "the DB instance is served by another host since"

// moved says so of one that is in the making: its host has only a standby now, if that.
func (d *draft) moved() bool {
	of, r := d.w.Instance, d.w.Report
	switch {
	case d.next.Of == "" || d.next.Standby != "" || d.status.State != kurabe.SnapshotCreating || of == nil || of.Goal == kurabe.GoalAbsent:
		return false
	case r != nil && (r.Done || !r.Facts.TakenAt.IsZero()):
		return false
	}
	return of.Host != d.next.Host
}

// take has a host make the snapshot, and tells how far it is.
func (d *draft) take() {
	if !d.had {
		d.assign()
		return
	}
	r := d.w.Report
	if d.reviewStandby() {
		return
	}
	if d.moved() {
		d.fail(WriterMoved)
		return
	}
	if r == nil || r.Generation != d.next.Generation {
		d.because("waiting for host " + string(d.next.Host))
		return
	}
	if taken := !d.status.Facts.TakenAt.IsZero(); !taken || !r.Facts.TakenAt.IsZero() {
		d.status.Facts = r.Facts // a host that has lost it still knows what it was, or we do
		d.status.Facts.StandbySkipped = cmp.Or(r.Facts.StandbySkipped, d.status.StandbySkipped)
	}
	switch {
	case r.Done:
		d.done()
		d.damaged()
		d.verify(r)
	case r.Failure != nil && r.Failure.Attempts >= Tries && !d.held(r.Failure):
		d.fail(r.Failure.Step + ": " + r.Failure.Message)
	case r.Failure != nil:
		d.status.Reason = r.Failure.Step + ": " + r.Failure.Message
		d.because(d.status.Reason)
		d.tellWait(r.Failure)
	default:
		d.status.Reason = ""
		d.because(fmt.Sprintf("host %s has copied %d %%", d.next.Host, r.Facts.Percent))
	}
}

// serversFirst orders hosts. An import is done by a server of the service, on its own host.
func serversFirst(a, b kurabe.HostReport) int {
	switch {
	case a.Server != b.Server && a.Server:
		return -1
	case a.Server != b.Server:
		return 1
	}
	return cmp.Compare(a.Host, b.Host)
}

// assign gives the work to the host that has the files.
func (d *draft) assign() {
	s := d.w.Spec
	d.next = kurabe.SnapshotAssignment{Snapshot: s.ID, Name: s.Name, Goal: kurabe.SnapshotPresent, Kind: s.Kind, Source: s.Source, Tags: s.Tags}
	switch {
	case d.imported() && len(d.w.Hosts) == 0:
		d.next = kurabe.SnapshotAssignment{}
		d.because("waiting for a host to report")
		return
	case d.imported():
		d.next.Host = slices.MinFunc(d.w.Hosts, serversFirst).Host
		d.status.Host = d.next.Host
		d.because("host " + string(d.next.Host) + " is to look for it")
		return
	case s.CopyOf != "" && (d.w.From == nil || d.w.From.State != kurabe.SnapshotAvailable || d.w.From.Host == ""):
		d.next = kurabe.SnapshotAssignment{}
		d.fail("the snapshot to copy, " + s.CopyOfName + ", is no longer available")
		return
	case s.CopyOf != "":
		d.next.Host, d.next.From = d.w.From.Host, s.CopyOf
	case d.w.Instance == nil || d.w.Instance.Goal == kurabe.GoalAbsent:
		d.next = kurabe.SnapshotAssignment{}
		d.fail("DB instance " + s.Source.Name + " is gone")
		return
	default:
		d.next.Host, d.next.Of = d.w.Instance.Host, s.Source.Instance
		d.chooseStandby()
	}
	d.status.Host = d.next.Host
	d.because("host " + string(d.next.Host) + " has the files")
}

func (d *draft) done() {
	d.status.Reason = ""
	if d.status.State == kurabe.SnapshotAvailable {
		return
	}
	d.status.State = kurabe.SnapshotAvailable
	d.because("the host has a complete copy")
	d.instead()
	switch s := d.w.Spec; {
	case d.imported():
		d.tell(event.ImportDone)
	case s.CopyOf != "":
		d.tell(event.CopyDone.With(s.CopyOfName))
	case s.Kind == kurabe.SnapshotAutomated:
		d.tell(event.AutomatedDone)
		d.tellInstance(event.BackupDone)
	default:
		d.tell(event.ManualDone)
		d.tellInstance(event.BackupDone)
	}
}

// instead tells of a snapshot that clients may have felt.
func (d *draft) instead() {
	if why := d.status.Facts.StandbySkipped; why != "" && d.w.Spec.CopyOf == "" {
		d.tellInstance(event.BackupOfPrimary.With(d.w.Spec.Name, why))
	}
}

// fail ends a snapshot that could not be taken. It stays listed with its reason
// until it is deleted, and what the host has of it goes at once: half a copy must
// not fill the disk that may have been its reason. One that was complete and that
// the host no longer finds whole is kept as it is: a person may still save it. So is
// an imported one, whose repository may only be away.
func (d *draft) fail(reason string) {
	was := d.status.State == kurabe.SnapshotAvailable
	d.status.State, d.status.Reason = kurabe.SnapshotFailed, reason
	d.because(reason)
	d.tell(event.SnapshotFailed.With(reason))
	d.tellInstance(event.BackupFailed.With(d.w.Spec.Name, reason))
	if d.had && !was && !d.imported() {
		d.next.Goal = kurabe.SnapshotAbsent
	}
}

// remove deletes the files once nobody reads them, then the records.
func (d *draft) remove() {
	d.status.State = kurabe.SnapshotDeleting
	switch r := d.w.Report; {
	case !d.had:
		d.gone("it was never assigned to a host")
	case len(d.w.Readers) > 0:
		d.because("still read by " + d.w.Readers[0])
	case d.next.Goal != kurabe.SnapshotAbsent:
		d.next.Goal = kurabe.SnapshotAbsent
		d.because("it is to be deleted")
	case d.formerLeft() != "":
		d.because("waiting for host " + string(d.formerLeft()) + " to remove its part")
	case r != nil && r.Absent && r.Generation == d.next.Generation:
		d.gone("the host has nothing left of it")
	default:
		d.because("waiting for host " + string(d.next.Host) + " to remove it")
	}
}

func (d *draft) gone(reason string) {
	d.because(reason)
	if d.w.Spec.Kind == kurabe.SnapshotAutomated {
		d.tell(event.AutomatedDeleted)
	} else {
		d.tell(event.SnapshotDeleted)
	}
	d.result.Gone = true
}

// finish turns the draft into a result that holds changes only.
func (d *draft) finish() Result {
	if d.result.Gone {
		return d.result
	}
	if d.next.Host != "" && (!d.had || !reflect.DeepEqual(d.next, *d.w.Assignment)) {
		d.next.Generation++
		d.result.Assignment = &d.next
	}
	if d.w.Status == nil || d.status.State != d.w.Status.State {
		d.status.Since = d.w.Now
	}
	if d.w.Status == nil || !reflect.DeepEqual(d.status, *d.w.Status) {
		d.result.Status = &d.status
	}
	return d.result
}
