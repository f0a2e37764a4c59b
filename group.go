package kurabe

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// memberMark stands between the id of an instance and the number of a server of it. No id
// of an instance has it.
const memberMark = "~"

// Member names a server of an instance. The first has the instance's own id, so that an
// instance with one server is what it was; others are ID~2, ID~3. A number is never used
// again.
func (id InstanceID) Member(number int) InstanceID {
	if number == 1 {
		return id.Owner()
	}
	return id.Owner() + InstanceID(memberMark+strconv.Itoa(number))
}

// Owner is the instance that a server belongs to.
func (id InstanceID) Owner() InstanceID {
	owner, _, _ := strings.Cut(string(id), memberMark)
	return InstanceID(owner)
}

// Number is that of a server in its instance, from 1 on; 0 of what is no id of a member.
func (id InstanceID) Number() int {
	_, text, marked := strings.Cut(string(id), memberMark)
	if !marked {
		return 1
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 2 || text != strconv.Itoa(n) {
		return 0
	}
	return n
}

// Epoch counts the writers of an instance: each has one of its own, higher than any
// before.
type Epoch int64

// Member is one server of an instance, and where it is.
type Member struct {
	ID   InstanceID `json:"id"`
	Host HostID     `json:"host"`
	Zone string     `json:"zone"`
	// ListensAt is the address of its server, "" of one that holds the instance's endpoint
	// itself.
	ListensAt string `json:"listensAt,omitempty"`
	// Leaving: it is taken out of the group; its record stays until nothing is left of it.
	Leaving bool `json:"leaving,omitempty"`
	// DiscardedSeq is the newest Discarded of its report that an event has told.
	DiscardedSeq int64 `json:"givenUpSeq,omitempty"`
	// Waits is what of its count is part of the instance's.
	Waits WaitCount `json:"waits,omitzero"`
}

// Group is the record of the primary of an instance with several servers: only the server that
// it names may write. The planner alone writes it, and only over the version it has read.
//
// A commit is acknowledged only when a member of SyncSet has it, or SyncSet is empty; with
// RequireStandby only when another member has it. Logs are ordered, so the member of SyncSet
// with the longest log has every acknowledged commit; the planner knows which one that is once
// none of them receives more. A change that weakens this promise (a larger SyncSet, an empty
// one) is written here before the database obeys it; one that strengthens it, after.
type Group struct {
	Instance   InstanceID   `json:"instance"`
	Epoch      Epoch        `json:"epoch"`
	Primary    InstanceID   `json:"writer"`
	SyncSet    []InstanceID `json:"sync,omitempty"` // sorted; never the writer
	Members    []Member     `json:"members"`        // by number
	LastNumber int          `json:"last"`           // the highest number that was ever given
	// HandoverTo is the standby to which the primary hands over in order, "" for none.
	HandoverTo InstanceID `json:"handover,omitempty"`
	// SwitchoverTo is the read replica that replaces this instance, "" for none. Its primary
	// steps down; the removal of this record decides for the replica, the emptying of this
	// field against it. Only one of the two can be written.
	SwitchoverTo InstanceID `json:"switch,omitempty"`
	// HandoverCandidate is to become the only member of SyncSet, so that the primary can hand
	// over to it; "" for none.
	HandoverCandidate InstanceID `json:"heir,omitempty"`
	// Electing: the primary is dead or not heard, and no member receives its log since Epoch:
	// the member of SyncSet with the longest log becomes the primary.
	Electing bool `json:"choosing,omitempty"`
	// ForcedPrimary is to become the primary although it is not in SyncSet, because an operator
	// has accepted the loss; "" for none. The present primary is fenced first.
	ForcedPrimary InstanceID `json:"recovering,omitempty"`
	// WaitForOldLease is the epoch whose primary took over from one that was not heard, 0 for none.
	WaitForOldLease Epoch `json:"outlasts,omitempty"`
	// RequireStandby: no commit goes on without a standby, since a member of SyncSet had every
	// commit under the policy StandbyLostBlock. SyncSet may still become empty: then none may
	// take over, and commits wait for the next standby.
	RequireStandby bool `json:"blocks,omitempty"`
	// UnprotectedSince is when SyncSet became empty although there are other members: commits
	// since then would be lost with the primary.
	UnprotectedSince time.Time `json:"since,omitzero"`
}

// InSyncSet says whether a member is in SyncSet.
func (g *Group) InSyncSet(id InstanceID) bool { return slices.Contains(g.SyncSet, id) }

// Member returns a member of the group.
func (g *Group) Member(id InstanceID) (Member, bool) {
	n := slices.IndexFunc(g.Members, func(m Member) bool { return m.ID == id })
	if n < 0 {
		return Member{}, false
	}
	return g.Members[n], true
}

// Clone copies what could be changed.
func (g *Group) Clone() *Group {
	c := *g
	c.SyncSet, c.Members = slices.Clone(g.SyncSet), slices.Clone(g.Members)
	return &c
}

// WaitCount counts commits that ended their wait for a standby before one had answered. They
// are committed at their server nevertheless, and other sessions see them.
type WaitCount struct {
	// Cancelled are those whose statements were cancelled: their clients were answered, with a
	// warning. Ended are those whose sessions were ended, which had no answer any more.
	Cancelled int64 `json:"cancelled,omitempty"`
	Ended     int64 `json:"ended,omitempty"`
}

// Sum is how many they are.
func (c WaitCount) Sum() int64 { return c.Cancelled + c.Ended }

// Plus adds two counts.
func (c WaitCount) Plus(d WaitCount) WaitCount {
	return WaitCount{c.Cancelled + d.Cancelled, c.Ended + d.Ended}
}

// Since is what came after an earlier count. One that has fallen has begun anew.
func (c WaitCount) Since(earlier WaitCount) WaitCount {
	if c.Cancelled < earlier.Cancelled || c.Ended < earlier.Ended {
		return c
	}
	return WaitCount{c.Cancelled - earlier.Cancelled, c.Ended - earlier.Ended}
}

// ServerWaits is what one server tells of them.
type ServerWaits struct {
	WaitCount // since it came into its group
	// Unreplicated: no other server is known to have the newest of them.
	Unreplicated bool `json:"alone,omitempty"`
	// Uncounted: the server was told not to write of them, so there may be more.
	Uncounted bool `json:"unseen,omitempty"`
}

// EndedWaits is what users are told of them.
type EndedWaits struct {
	WaitCount             // since the instance was made
	Announced   WaitCount `json:"told,omitzero"` // those of them that events have told of
	AnnouncedAt time.Time `json:"toldAt,omitzero"`
	// UnreplicatedAt is the server that alone had those which were told last, "" when that is over.
	UnreplicatedAt InstanceID `json:"aloneAt,omitempty"`
	// Uncounted: see ServerWaits, of the primary.
	Uncounted bool `json:"unseen,omitempty"`
}

// ReplicaLag is how far one follower is behind at a moment. It is looked up when somebody
// asks, and stored nowhere.
type ReplicaLag struct {
	Server InstanceID `json:"server"`
	// Seconds is how old what the follower shows is, as ReplicaLag of RDS: 0 when nothing is
	// left to apply, ReplicaLagNone while it does not follow. Then Reason says why.
	Seconds float64 `json:"seconds"`
	Reason  string  `json:"reason,omitempty"`
}

// ReplicaLagNone is the ReplicaLag of a follower whose replication is not active (RDS user
// guide, "Monitoring read replication").
const ReplicaLagNone = -1

// Following is how what follows one DB instance or DB cluster, or a read replica itself,
// stands now.
type Following struct {
	Name    string `json:"name"`
	Cluster bool   `json:"cluster,omitempty"`
	// Source is the name of the instance that it is a read replica of.
	Source string `json:"source,omitempty"`
	// Standbys says that there are to be servers that can take over; of what has one server, the
	// next four mean nothing. Synced: one of them has every commit. Without one, UnprotectedSince is
	// from when on what was written would be lost with the writer.
	Standbys         bool      `json:"standbys,omitempty"`
	Synced           bool      `json:"synced,omitempty"`
	UnprotectedSince time.Time `json:"aloneSince,omitzero"`
	// Failovers counts those since the instance was made.
	Failovers int64 `json:"failovers,omitempty"`
	// Waits counts the commits since then that ended their wait for a standby early; nil where
	// the server was told not to write of them.
	Waits     *WaitCount `json:"waits,omitempty"`
	Followers []Follower `json:"followers"` // by number; never null
}

// Unprotected is for how long commits have gone on without a standby that has them, 0 while one does;
// false when that is not known, or there is to be no standby.
func (f Following) Unprotected(now time.Time) (time.Duration, bool) {
	switch {
	case !f.Standbys || !f.Synced && f.UnprotectedSince.IsZero():
		return 0, false
	case f.Synced:
		return 0, true
	}
	return max(0, now.Sub(f.UnprotectedSince)), true
}

// FollowerKind is what a follower is to users.
type FollowerKind string

// The kinds: the standby of a Multi-AZ instance, a reader of a DB cluster, a read replica.
const (
	FollowerStandby FollowerKind = "standby"
	FollowerReader  FollowerKind = "reader"
	FollowerReplica FollowerKind = "replica"
)

// Follower is one of them.
type Follower struct {
	Server InstanceID   `json:"server"`
	Host   HostID       `json:"host"`
	Kind   FollowerKind `json:"kind"`
	// Instance is the DB instance that it is to users: itself, but of a standby.
	Instance string `json:"instance"`
	// Lag is nil when its host has not answered; then Unknown says why.
	Lag     *ReplicaLag `json:"lag,omitempty"`
	Unknown string      `json:"unknown,omitempty"`
}
