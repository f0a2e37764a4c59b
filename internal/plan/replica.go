package plan

import (
	"fmt"
	"slices"
	"time"

	"kurabe"
	"kurabe/internal/event"
)

// Upstream is what is known of the instance that a read replica follows.
type Upstream struct {
	// Gone: it is there no more, or is about to be deleted.
	Gone bool
	// Epoch is that of its primary, or of the replica that it is itself.
	Epoch kurabe.Epoch
	// Assignment and Report are those of the server that writes, nil when there is none.
	Assignment *kurabe.Assignment
	Report     *kurabe.InstanceReport
	// Switch is the replica that it yields to, Asked the one that it is to yield to by the
	// user's newest wish, which it has not taken up; "" of none.
	Switch, Asked kurabe.InstanceID
	// Status is its own, nil when it was never planned, Siblings are those of its replicas.
	Status   *kurabe.InstanceStatus
	Siblings map[kurabe.InstanceID]*kurabe.InstanceStatus
}

// brokenAfter is how long a replica may follow nobody before users are told that its
// replication is broken: its source may be restarting or failing over.
const brokenAfter = 30 * time.Second

// follows says whether the instance is a read replica now.
func (d *draft) follows() bool { return d.status.Source != "" }

// planSource decides whether a read replica is one for longer. It says whether there is
// anything to plan: one that has no data yet waits until its source lets it in.
func (d *draft) planSource() bool {
	if !d.follows() {
		return true
	}
	up := d.w.Source
	made := !d.status.AvailableAt.IsZero()
	gone := up != nil && up.Gone
	switch {
	case gone && !made:
		d.cannotBeMade()
		return false
	case gone:
		d.because("its source is deleted: it goes on as an instance of its own")
		d.promote("Its source is deleted: promoted the read replica to a stand-alone DB instance")
	case made && d.w.Spec.PromoteSeq > d.status.PromoteSeq:
		d.because("the user asked for its promotion")
		d.promote("Promoted the read replica to a stand-alone DB instance")
	case made && d.hasAllOfSource():
		d.takeOver()
	case !d.had && !d.sourceIsReady():
		d.because("waiting for its source to let it in")
		return false
	}
	return true
}

// cannotBeMade is the end of a replica whose source went before there was a copy of it.
func (d *draft) cannotBeMade() {
	const why = "Its source was deleted before the read replica was made. Delete the read replica."
	d.because(why)
	if d.status.State != kurabe.StateFailed {
		d.tell(event.ReplicaFailed.And(". " + why))
	}
	d.status.State, d.status.Action, d.status.Reason = kurabe.StateFailed, "", why
}

// sourceIsReady says whether the source's server knows this replica and obeys.
func (d *draft) sourceIsReady() bool {
	up := d.w.Source
	if up == nil || up.Assignment == nil || up.Report == nil {
		return false
	}
	a, r := up.Assignment, up.Report
	return a.Role != nil && slices.Contains(a.Role.Followers, d.w.Spec.ID) && r.Running && r.Done && r.Generation == a.Generation
}

// promote ends the replication for good: from here on the instance is one with a record of
// who writes it, until its server does.
func (d *draft) promote(message string) {
	d.beginReplicaGroup()
	d.tell(event.ReplicationEnded)
	d.tell(event.ReplicaPromoted.With(message))
}

// beginReplicaGroup begins the record of the group by which a replica becomes a primary.
func (d *draft) beginReplicaGroup() {
	d.status.PromoteSeq, d.status.Source = d.w.Spec.PromoteSeq, ""
	d.status.Replication, d.status.ReplicationReason, d.status.ReplicationBrokenSince, d.status.ReplicationCheckedAt = "", "", time.Time{}, time.Time{}
	d.status.Promoting = true
	id, epoch := d.w.Spec.ID, kurabe.Epoch(1)
	if role := d.next.Role; role != nil {
		epoch = role.Epoch + 1
	}
	d.group = &kurabe.Group{Instance: id, Epoch: epoch, Primary: id, LastNumber: 1, UnprotectedSince: d.w.Now,
		Members: []kurabe.Member{{ID: id, Host: d.next.Host, Zone: d.status.Zone}}}
	d.status.Action = kurabe.StateModifying
}

// tellPromoted writes the event that a former replica accepts writes.
func (d *draft) tellPromoted() {
	if d.status.Promoting && d.primaryState().writing {
		d.status.Promoting = false
		d.because("it writes, as an instance of its own")
	}
}

// password is the master password that is to be in force. That of a replica is its
// source's, which comes with the data; who promotes it writes that into its spec.
func (d *draft) password() kurabe.Password {
	if !d.follows() {
		return d.w.Spec.Password
	}
	if up := d.w.Source; up != nil && up.Assignment != nil {
		return up.Assignment.Password.From(up.Assignment.Instance)
	}
	return d.next.Password
}

// planReplica gives the one server of a read replica its role.
func (d *draft) planReplica() {
	old := d.w.Assignment
	if d.isFormerSource() && !d.sourceIsReady() {
		d.next.Role = old.Role
		d.because("it stays down until the replica that has taken its place lets it in")
		return
	}
	role := kurabe.Role{Epoch: 1, Duty: kurabe.DutyFollow, ServesReads: true, Followers: d.w.Replicas, SourceEnd: d.w.Source.end(d.w.Spec.ID)}
	var source *kurabe.Source
	if old != nil && old.Role != nil {
		role.Epoch, role.RebuildSeq, source = old.Role.Epoch, old.Role.RebuildSeq, old.Role.Source
	}
	if up := d.w.Source; up != nil && up.Assignment != nil {
		a := up.Assignment
		now := &kurabe.Source{ID: a.Instance, Host: a.Host, Address: a.Listens(), Port: a.Port, Epoch: up.Epoch}
		if source != nil && source.ID.Owner() != now.ID.Owner() && !d.sourceIsReady() {
			d.because("it follows " + string(now.ID) + " once that lets it in")
			now = source
		}
		if source != nil && *source != *now || d.isFormerSource() {
			d.because(fmt.Sprintf("it follows %s at %s", now.ID, now.Address))
			role.Epoch++
		}
		source = now
	}
	role.Source = source
	if old != nil && old.Role != nil {
		role.RebuildSeq = d.replicaRebuild(*old)
	}
	d.next.Role = &role
	if d.switching() {
		d.acting(false, kurabe.StateModifying, "it is to take the place of its source")
	}
	d.tellReplication()
	if d.comparesAgain() {
		role.Epoch++
	}
}

// compareAgain is how often a replica whose replication is broken compares itself with its
// source again. It has done so when that changed; what it lacks, or has alone, may show
// later, as where its source is a replica that was made anew meanwhile.
const compareAgain = 5 * time.Minute

// comparesAgain says whether a replica is to check once more whether it can continue.
func (d *draft) comparesAgain() bool {
	s, up := &d.status, d.w.Source
	if s.Replication != kurabe.ReplicationBroken || d.next.Goal != kurabe.GoalRunning || up == nil || up.Report == nil || !up.Report.Running {
		return false
	}
	again := s.ReplicationCheckedAt.Add(compareAgain)
	if d.w.Now.Before(again) {
		d.lookAgain(again)
		return false
	}
	s.ReplicationCheckedAt = d.w.Now
	d.because("it compares itself with its source again")
	d.lookAgain(d.w.Now.Add(compareAgain))
	return true
}

// replicaRebuild orders that a replica be made anew that can follow no more: its source has
// no longer what it lacks, or its server cannot start.
func (d *draft) replicaRebuild(old kurabe.Assignment) int64 {
	seq, f, up := old.Role.RebuildSeq, d.w.Report, d.w.Source
	if d.next.Goal != kurabe.GoalRunning || f == nil || f.Role == nil || f.Generation != old.Generation || f.Role.RebuiltSeq < seq ||
		up == nil || up.Report == nil || up.Report.Role == nil || !up.Report.Running {
		return seq
	}
	switch {
	case f.Running && slices.Contains(up.Report.Role.NeedRebuild, d.w.Spec.ID):
		d.because("it lacks log that its source has no more; it is made anew")
		d.tell(event.ReplicaLacksLog)
	case d.dataIsDamaged(f):
		d.status.RebuiltAt = d.w.Now
		d.because("its server cannot start; it is made anew")
		d.tell(event.ReplicaDamaged.With(f.Failure.Message))
	default:
		return seq
	}
	return max(seq, f.Role.RebuiltSeq) + 1
}

// tellReplication fills in how the replica follows, for users.
func (d *draft) tellReplication() {
	r := d.w.Report
	following := r != nil && r.Role != nil && r.Role.Following
	s := &d.status
	switch {
	case following:
		if s.Replication == kurabe.ReplicationBroken {
			d.tell(event.ReplicationResumed)
		}
		s.Replication, s.ReplicationReason, s.ReplicationBrokenSince, s.ReplicationCheckedAt = kurabe.ReplicationRunning, "", time.Time{}, time.Time{}
		return
	case s.Replication != kurabe.ReplicationRunning:
		return
	case s.ReplicationBrokenSince.IsZero():
		s.ReplicationBrokenSince = d.w.Now
	}
	late := s.ReplicationBrokenSince.Add(brokenAfter)
	if d.w.Now.Before(late) {
		d.lookAgain(late)
		return
	}
	s.Replication, s.ReplicationReason = kurabe.ReplicationBroken, d.whyBroken()
	d.because("the replication is broken: " + s.ReplicationReason)
	d.tell(event.ReplicationStopped.And(": " + s.ReplicationReason))
}

// whyBroken is what is known of why a replica does not follow.
func (d *draft) whyBroken() string {
	r, up := d.w.Report, d.w.Source
	switch {
	case r != nil && r.Failure != nil:
		return r.Failure.Step + ": " + r.Failure.Message
	case r != nil && r.Role != nil && d.next.Role != nil && r.Role.RebuiltSeq < d.next.Role.RebuildSeq:
		return "it is being made anew"
	case r == nil || !r.Running:
		return "the server of the read replica does not run"
	case up == nil || up.Report == nil || !up.Report.Running:
		return "the source does not run"
	}
	return "the source does not answer"
}
