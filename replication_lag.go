package kurabe

import "time"

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
