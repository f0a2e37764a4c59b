package kurabe

import (
	"slices"
	"time"
)

// Duty is the task of one server in its group.
type Duty string

// The duties. DutyWrite serves clients. DutyFollow replicates from Source. DutyStepDown ends
// the sessions, sends the remaining log to the followers, stops the server cleanly and keeps
// it down. DutyFenced kills the server at once and keeps it down; its data stays. DutyDetached
// makes it a follower without a source: it receives no log until its duty changes.
const (
	DutyWrite    Duty = "write"
	DutyFollow   Duty = "follow"
	DutyStepDown Duty = "yield"
	DutyFenced   Duty = "rest"
	DutyDetached Duty = "hold"
)

// Role is the role of a server in its group. The planner derives it from the Group record.
type Role struct {
	Epoch Epoch `json:"epoch"`
	Duty  Duty  `json:"duty"`
	// Followers may replicate from this server, each with a slot: the other members if it is
	// the primary, and read replicas, which are instances of their own.
	Followers []InstanceID `json:"followers,omitempty"`
	// WaitFor are the followers whose acknowledgement a commit needs; that of any one suffices.
	WaitFor []InstanceID `json:"waitFor,omitempty"`
	// StartSeq numbers the ordered starts of a server with WaitFor. Its agent starts it only by
	// order, because a dead primary must stay down while a standby may take over. Without
	// WaitFor the agent restarts a dead server by itself.
	StartSeq int64 `json:"startSeq,omitempty"`
	// RebuildSeq numbers the orders to a follower to discard its data and to copy that of its
	// source. The planner ignores its data until the newest order is carried out.
	RebuildSeq int64 `json:"rebuildSeq,omitempty"`
	// RequireStandby: every commit needs a standby, whatever happens to those of WaitFor. So
	// the server admits no client before its commits wait.
	RequireStandby bool `json:"blocks,omitempty"`
	// AllowUnprotectedClients: a server that keeps clients out admits them once its commits
	// wait, although no standby has the data that they see: none may take over.
	AllowUnprotectedClients bool `json:"opens,omitempty"`
	// Source is the server from which a follower replicates.
	Source *Source `json:"source,omitempty"`
	// Leased: a standby on another host may take over unheard. So the server serves only while
	// the lease of its host runs, or while one of WaitFor is known to
	// have followed it within StandbyLeaseTime.
	Leased bool `json:"leased,omitempty"`
	// WaitForOldLease: the former primary is not heard, and may serve for StandbyLeaseTime after
	// this server stopped following it. This server admits clients after that.
	WaitForOldLease bool `json:"outlasts,omitempty"`
	// ServesReads: this follower serves read-only clients. It is a read replica, for which no
	// commit waits, or a standby of a DB cluster.
	ServesReads bool `json:"reads,omitempty"`
	// HandsOverToReplica: it steps down for a read replica, for which no commit has waited. So
	// its report must tell the end of its log.
	HandsOverToReplica bool `json:"gives,omitempty"`
	// SourceEnd is the final end of the source's log, in the engine's unit, for a read replica
	// that is to replace its source; 0 for every other.
	SourceEnd int64 `json:"reach,omitempty"`
	// Readers are the addresses behind the reader endpoint, for the primary of a DB cluster.
	Readers []string `json:"readers,omitempty"`
}

// Source is the server from which a follower replicates.
type Source struct {
	ID      InstanceID `json:"id"`
	Host    HostID     `json:"host,omitempty"`
	Address string     `json:"address"`
	Port    int        `json:"port"`
	// Epoch is that of the source, if the follower is a read replica.
	Epoch Epoch `json:"epoch,omitempty"`
}

// RoleReport is the state of a server of a group, as its host sees it.
type RoleReport struct {
	// Epoch is that of the newest assignment which the running database obeys.
	Epoch Epoch `json:"epoch"`
	// Detached: it is a follower, has received no log since it obeyed Epoch, and Position is the
	// final end of its log.
	Detached bool `json:"held,omitempty"`
	// IsPrimary: it runs and is no follower, so others can follow it. Writing: it also admits
	// clients. Following: it runs and receives the log of its source now.
	IsPrimary bool `json:"leading,omitempty"`
	Writing   bool `json:"writing,omitempty"`
	Following bool `json:"following,omitempty"`
	// ReadsStale: a follower has not applied the log that it had ReaderLagMost ago, or has not
	// followed since.
	ReadsStale bool `json:"late,omitempty"`
	// ApplyLags: a follower has not applied the log that it had half a second ago. If it were
	// promoted, its clients would wait for that.
	ApplyLags bool `json:"behind,omitempty"`
	// Unresponsive: its process lives and has not answered for StuckAfter.
	Unresponsive bool `json:"stuck,omitempty"`
	// SteppedDown: it has stopped cleanly, and every connected follower has its whole log.
	SteppedDown bool `json:"yielded,omitempty"`
	// HasSourceEnd: its durable log reaches Role.SourceEnd.
	HasSourceEnd bool `json:"reached,omitempty"`
	// StartedSeq is the newest StartSeq that was carried out.
	StartedSeq int64 `json:"started,omitempty"`
	// RebuiltSeq is the newest RebuildSeq that was carried out.
	RebuiltSeq int64 `json:"rebuilt,omitempty"`
	// WaitsFor are the followers whose acknowledgement a commit needs in the running database;
	// CaughtUp those of them that have all that was written before it waited for just these.
	WaitsFor []InstanceID `json:"waitsFor,omitempty"`
	CaughtUp []InstanceID `json:"covered,omitempty"`
	// Replayed are those of CaughtUp that have also applied it.
	Replayed []InstanceID `json:"replayed,omitempty"`
	// NearlyCaughtUp are the followers that lack at most NearBytes, so that commits may begin to
	// wait for them.
	NearlyCaughtUp []InstanceID `json:"near,omitempty"`
	// SilentFollowers are not connected, or have not answered for SilentMost.
	SilentFollowers []InstanceID `json:"silent,omitempty"`
	// CutOff: the host has heard nothing from the service since SilentFollowers changed. It may be
	// isolated, so that no order to go on without them can reach it.
	CutOff bool `json:"unheard,omitempty"`
	// Discarded counts the commits that it alone had and discarded when it began to follow.
	Discarded DiscardedCommits `json:"givenUp,omitzero"`
	// Waits counts the commits that ended their wait early; nil while that is not known.
	Waits *ServerWaits `json:"waits,omitempty"`
	// NeedRebuild are the followers whose next piece of the log the primary has removed: they
	// cannot catch up.
	NeedRebuild []InstanceID `json:"lost,omitempty"`
	// Leased: the server ends with its lease, even without the agent.
	Leased bool `json:"leased,omitempty"`
	// Position is the end of its durable log, in the engine's unit; of a stopped server the
	// last position seen, or the end of its log if it stepped down with HandsOverToReplica.
	// A report that changes nothing else is no news.
	Position int64 `json:"position,omitempty"`
}

// DiscardedCommits counts the commits that only a former primary had when it was made a
// follower of its successor: their clients had cancelled the wait for a standby, or still
// waited when the server died.
type DiscardedCommits struct {
	// Seq numbers the rejoins that discarded something, or an unknown number.
	Seq int64 `json:"seq"`
	// Transactions is the number at the newest of them, or DiscardedUnknown.
	Transactions int64 `json:"transactions"`
}

// DiscardedUnknown stands for a number that is not known.
const DiscardedUnknown = -1

// Listens is the address at which the server itself listens: its own, or the endpoint.
func (a *Assignment) Listens() string {
	if a.ListensAt != "" {
		return a.ListensAt
	}
	return a.Address
}

// Writes says whether the server takes writes of clients, as one without a group does.
func (a *Assignment) Writes() bool { return a.Role == nil || a.Role.Duty == DutyWrite }

// StandsBy says whether the server follows a primary whose commits wait for it, or for one of
// several standbys of which it is one.
func (a *Assignment) StandsBy(writer Assignment) bool {
	return a.Goal == GoalRunning && a.Role != nil && a.Role.Duty == DutyFollow && a.Instance.Owner() == writer.Instance.Owner() &&
		writer.Writes() && writer.Goal == GoalRunning && writer.Role != nil && slices.Contains(writer.Role.WaitFor, a.Instance)
}

// The lease of a writer that a server on another host may replace. Times are of CLOCK_BOOTTIME
// of the host that they are said of, which nobody sets and which counts suspension; clocks of
// two hosts may differ in their rate by a tenth, and in nothing else that matters.
const (
	// LeaseTime is how long a host may serve after it sent the word that the service has
	// answered last.
	LeaseTime = 3500 * time.Millisecond
	// HostLostAfter is the silence after which the service calls a host lost, counted from the
	// last word that it received. By then the lease has ended: LeaseTime and a tenth, and
	// half a second to end the server in.
	HostLostAfter = 4500 * time.Millisecond
	// StandbyLeaseTime is how long a writer may serve after a moment at which its standby followed
	// it: so losing the service alone ends nothing.
	StandbyLeaseTime = 1800 * time.Millisecond
	// OldLeaseWait is how long a standby keeps clients out when it takes over from a writer
	// that is not heard, counted from when it follows no more: StandbyLeaseTime, a tenth, and what
	// it takes to end a server.
	OldLeaseWait = 2300 * time.Millisecond
)
