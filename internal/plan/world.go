package plan

import (
	"time"

	"kurabe"
	"kurabe/internal/event"
	"kurabe/internal/plan/backup"
)

// World is everything that may influence the plan of one instance. Records are
// read, never changed.
type World struct {
	Now        time.Time
	Spec       *kurabe.InstanceSpec
	Status     *kurabe.InstanceStatus // nil: never planned
	Assignment *kurabe.Assignment     // nil: never assigned
	Report     *kurabe.InstanceReport // nil: the host has not spoken
	Parameters *kurabe.ParameterGroup // nil: a default group
	// Group is nil of an instance with one server. Assignment and Report are the primary's
	// then, Members and Reports everybody's.
	Group   *kurabe.Group
	Members map[kurabe.InstanceID]*kurabe.Assignment
	Reports map[kurabe.InstanceID]*kurabe.InstanceReport
	// Source is what a read replica follows, nil when nothing is known of that. Replicas are
	// the instances that follow this one, sorted.
	Source   *Upstream
	Replicas []kurabe.InstanceID
	// SwitchoverTarget is the replica that is to replace this instance, nil for none.
	SwitchoverTarget *Upstream
	// SecurityGroups are those of the instance; none permits everything. RelatedHosts have servers
	// of it, of its replicas, or the one that it follows.
	SecurityGroups []kurabe.SecurityGroup
	RelatedHosts   []kurabe.HostID
	// Domain is what the names of endpoints end with.
	Domain  kurabe.EndpointDomain
	Catalog *kurabe.Catalog // of the version that the spec wants; nil: not read yet
	Hosts   []kurabe.HostReport
	// Closed says of hosts why nothing new is placed on them, Lost since when they are not
	// heard. OriginHost is the only one that has what the instance is made of, "": all have.
	Closed map[kurabe.HostID]string
	// Emptied says of those that are to be emptied why.
	Emptied    map[kurabe.HostID]string
	Lost       map[kurabe.HostID]time.Time
	OriginHost kurabe.HostID
	// HeardAt is the newest word of hosts that speak over a network, zero of one that has not
	// spoken. One that is not named needs no word to be heard.
	HeardAt map[kurabe.HostID]time.Time
	// RemovedHosts never come back.
	RemovedHosts map[kurabe.HostID]bool
	// Addresses are the endpoints of the other instances, Reserved the memory
	// in bytes that they hold on each host.
	Addresses map[string]bool
	Reserved  map[kurabe.HostID]int64
	// BackingUp says that a snapshot of the instance, no copy, is being made. Final
	// is the status of the snapshot to be taken before its deletion, nil while it
	// was never planned.
	BackingUp bool
	Final     *kurabe.SnapshotStatus
	// Tasks are what was ordered beside the servers, TaskReports what came of it.
	Tasks       []kurabe.Task
	TaskReports []kurabe.TaskReport
	// Backups are the automated snapshots of the instance, in any order.
	Backups []backup.Backup
}

// Result is what must change; nil fields stay as they are.
type Result struct {
	Assignment *kurabe.Assignment
	Status     *kurabe.InstanceStatus
	// Group is the record of who writes, GroupGone that it is to go. Members are the
	// assignments of others than Assignment's, MembersGone those that are to go.
	Group       *kurabe.Group
	GroupGone   bool
	Members     []kurabe.Assignment
	MembersGone []kurabe.InstanceID
	Events      []kurabe.Event
	// Snapshot is an automated snapshot to be made.
	Snapshot *kurabe.SnapshotSpec
	// Tasks are to be ordered, TasksGone are to go.
	Tasks, TasksGone []kurabe.Task
	// Gone: nothing of the instance is left; its records are to be removed.
	Gone bool
	// RequireSilent are the hosts that must not have been heard again when this is written:
	// others replace their servers.
	RequireSilent []kurabe.HostID
	// Followers are the new statuses of other instances, which follow this one from now on: of
	// the source whose place it has taken, whose record of who writes it goes, and of those
	// that followed that one.
	Followers []kurabe.InstanceStatus
	// CannotLeave says of servers on hosts that are to be emptied why they cannot leave. The
	// others are about to.
	CannotLeave map[kurabe.InstanceID]string
	// Reasons say, for people, why the result is what it is.
	Reasons []string
	// LookAgain is when time alone can change the plan; zero: never.
	LookAgain time.Time
}

// draft is a plan in the making: copies of the records that Next may change.
type draft struct {
	w      World
	status kurabe.InstanceStatus
	next   kurabe.Assignment
	had    bool          // there was an assignment
	group  *kurabe.Group // in the making; nil of an instance with one server
	// baseBoot is the boot of the content that the draft began with.
	baseBoot int64
	// restartsAtOnce: the user asked for the primary's restart itself.
	restartsAtOnce bool
	// leavingMembers are to leave the SyncSet, and then the group.
	leavingMembers map[kurabe.InstanceID]bool
	// handOverForDisk: the primary is to hand over because its disk is nearly full. fullStandbys
	// are stopped because theirs is. stoppedForDisk: so is the instance, or it was until now.
	handOverForDisk, stoppedForDisk bool
	fullStandbys                    map[kurabe.InstanceID]bool
	// unplaced is why no standby can be had where one is missing.
	unplaced string
	result   Result
}

func (d *draft) because(reason string) { d.result.Reasons = append(d.result.Reasons, reason) }

// lookAgain keeps the earliest of the moments asked for.
func (d *draft) lookAgain(t time.Time) {
	if d.result.LookAgain.IsZero() || t.Before(d.result.LookAgain) {
		d.result.LookAgain = t
	}
}

// tell writes an event of the instance.
func (d *draft) tell(kind event.Kind) {
	d.result.Events = append(d.result.Events, kind.Told(d.w.Now, d.w.Spec.EffectiveName(d.status.AppliedNext), string(d.w.Spec.ID)))
}
