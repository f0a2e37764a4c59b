package kurabe

import "slices"

// Duty is what a server of a group is there for.
type Duty string

// The duties. A writer serves clients. A follower follows Source. One that yields ends its
// sessions, gives its followers the rest of its log, stops cleanly and stays down. One
// that rests is dead, at once, and stays down; its data is kept. One that holds is a
// follower of nobody: it gets no log from anywhere until it has another duty.
const (
	DutyWrite  Duty = "write"
	DutyFollow Duty = "follow"
	DutyYield  Duty = "yield"
	DutyRest   Duty = "rest"
	DutyHold   Duty = "hold"
)

// Role is what a server is in its group. It follows from the Group record.
type Role struct {
	Epoch Epoch `json:"epoch"`
	Duty  Duty  `json:"duty"`
	// Followers are those that may connect, each with a slot: the others of its group, of a
	// writer, and read replicas, which have another owner.
	Followers []InstanceID `json:"followers,omitempty"`
	// WaitFor are those of them whose answer a commit waits for: that of any of them will do.
	WaitFor []InstanceID `json:"waitFor,omitempty"`
	// StartSeq numbers the starts of a server with WaitFor: each is ordered, since a writer
	// that died must stay down while another may be about to take its place. Without
	// WaitFor a dead server is started as ever.
	StartSeq int64 `json:"startSeq,omitempty"`
	// RebuildSeq numbers the orders to a follower to throw its data away and to be made
	// anew. Until the newest is known to be obeyed nobody may count on what it has.
	RebuildSeq int64 `json:"rebuildSeq,omitempty"`
	// Blocks: commits go on alone no more, whatever becomes of those of WaitFor. So the server
	// lets no client in before its commits wait.
	Blocks bool `json:"blocks,omitempty"`
	// Opens: a server that keeps clients out lets them in once its commits wait, although
	// nobody else has what they see then: nobody may take its place.
	Opens bool `json:"opens,omitempty"`
	// Source is whom a follower follows.
	Source *Source `json:"source,omitempty"`
	// Leased: somebody on another host may take its place, whom this host does not hear. So
	// its server serves only while the host's lease runs, or while one of WaitFor is known to
	// have followed it within VouchTime.
	Leased bool `json:"leased,omitempty"`
	// Outlasts: the writer before it is not heard, and may serve for VouchTime after this one
	// has ceased to follow it. Clients are let in after that.
	Outlasts bool `json:"outlasts,omitempty"`
	// Reads: a follower that serves clients, which only read. It is a read replica, whose source
	// is of another instance, and which is never waited for, or a standby of a DB cluster.
	Reads bool `json:"reads,omitempty"`
	// Gives: it yields to a read replica, whose answer no commit has waited for. So how far its
	// log is after its end is to be known.
	Gives bool `json:"gives,omitempty"`
	// Reach is, of a read replica that is to take the place of its source, where the source's log
	// has ended for good, in the engine's unit; 0 of every other.
	Reach int64 `json:"reach,omitempty"`
	// Readers are, of the writer of a DB cluster, where the standbys listen that the reader
	// endpoint leads to now.
	Readers []string `json:"readers,omitempty"`
}

// Source is a server that another one follows.
type Source struct {
	ID      InstanceID `json:"id"`
	Host    HostID     `json:"host,omitempty"`
	Address string     `json:"address"`
	Port    int        `json:"port"`
	// Epoch is the source's, of the source of a read replica.
	Epoch Epoch `json:"epoch,omitempty"`
}

// RoleReport is what a host sees of a server of a group.
type RoleReport struct {
	// Epoch is that of the newest assignment which the running database obeys.
	Epoch Epoch `json:"epoch"`
	// Held: it is a follower, has followed nobody since it obeyed Epoch, and Position is for
	// good how far its log is.
	Held bool `json:"held,omitempty"`
	// Leading: it runs and is no follower, so it can be followed. Writing: it also lets clients
	// in. Following: it runs and its log comes from its source now.
	Leading   bool `json:"leading,omitempty"`
	Writing   bool `json:"writing,omitempty"`
	Following bool `json:"following,omitempty"`
	// Late: a follower has not applied what it had ReaderLagMost ago, or has not followed since.
	Late bool `json:"late,omitempty"`
	// Behind: a follower has not applied what it had half a second ago. Were it to write, its
	// clients would have to wait for that.
	Behind bool `json:"behind,omitempty"`
	// Stuck: its process lives and has not answered for StuckAfter.
	Stuck bool `json:"stuck,omitempty"`
	// Yielded: it has stopped cleanly, and every follower that was connected has all.
	Yielded bool `json:"yielded,omitempty"`
	// Reached: it has its log up to Role.Reach, and keeps that whatever dies.
	Reached bool `json:"reached,omitempty"`
	// Started is the newest StartSeq that was used up.
	Started int64 `json:"started,omitempty"`
	// Rebuilt is the newest RebuildSeq whose new data is there.
	Rebuilt int64 `json:"rebuilt,omitempty"`
	// WaitsFor are those whose answer a commit waits for, as the running database has it;
	// Covered those of them that have all that was written before it waited for just these.
	WaitsFor []InstanceID `json:"waitsFor,omitempty"`
	Covered  []InstanceID `json:"covered,omitempty"`
	// Replayed are those of Covered that have also applied it.
	Replayed []InstanceID `json:"replayed,omitempty"`
	// Near are the followers that lack so little (NearBytes) that commits may begin to wait
	// for them.
	Near []InstanceID `json:"near,omitempty"`
	// Silent are the followers that are not connected, or have not answered for SilentMost.
	Silent []InstanceID `json:"silent,omitempty"`
	// Unheard: the host has heard nothing from the service since Silent is as it is. It may be
	// that it hears nobody, whom nobody can tell to go on alone.
	Unheard bool `json:"unheard,omitempty"`
	// GivenUp is what it had committed alone and lost when it began to follow.
	GivenUp GivenUp `json:"givenUp,omitzero"`
	// Waits is what it tells of commits that ended their wait early; nil while that is not known.
	Waits *ServerWaits `json:"waits,omitempty"`
	// Lost are the followers for whom the writer holds no log any more: they would lack a
	// part of it for ever.
	Lost []InstanceID `json:"lost,omitempty"`
	// Leased: its server ends with its lease, whatever becomes of the agent.
	Leased bool `json:"leased,omitempty"`
	// Position is how far its log is durable here, in the engine's unit; of a server that
	// does not run, how far it was seen to be, or, when it has yielded and Gives, where
	// its log ends. It moves without being news.
	Position int64 `json:"position,omitempty"`
}

// GivenUp is what a former writer had committed and nobody else had, when it was made a
// follower of its successor: commits that no client waits for any more, whose wait was
// cancelled, or that were in the midst of it when the server died.
type GivenUp struct {
	// Seq numbers the times that there was something, or that it was not known.
	Seq int64 `json:"seq"`
	// Transactions is how many the newest time, GivenUpUnknown when it is not known.
	Transactions int64 `json:"transactions"`
}

// GivenUpUnknown stands for a number that nobody can tell.
const GivenUpUnknown = -1

// Address that the server itself listens at: its own, or the endpoint.
func (a *Assignment) Listens() string {
	if a.ListensAt != "" {
		return a.ListensAt
	}
	return a.Address
}

// Writes says whether the server serves clients, as one without a group does.
func (a *Assignment) Writes() bool { return a.Role == nil || a.Role.Duty == DutyWrite }

// StandsBy says whether the server follows a writer that waits for its answer to each commit,
// or for that of one beside it.
func (a *Assignment) StandsBy(writer Assignment) bool {
	return a.Goal == GoalRunning && a.Role != nil && a.Role.Duty == DutyFollow && a.Instance.Owner() == writer.Instance.Owner() &&
		writer.Writes() && writer.Goal == GoalRunning && writer.Role != nil && slices.Contains(writer.Role.WaitFor, a.Instance)
}
