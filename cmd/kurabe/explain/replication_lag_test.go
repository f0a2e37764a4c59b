package explain

import (
	"testing"
	"time"

	"kurabe"
)

func TestReplicationColumn(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	lag := func(kind kurabe.FollowerKind, instance string, seconds float64) kurabe.Follower {
		return kurabe.Follower{Kind: kind, Instance: instance, Lag: &kurabe.ReplicaLag{Seconds: seconds, Reason: "it receives nothing from its source"}}
	}
	for want, f := range map[string]kurabe.Following{
		"-":              {},
		"standby: 0.0 s": {Standbys: true, Synced: true, Followers: []kurabe.Follower{lag(kurabe.FollowerStandby, "shop", 0)}},
		"no standby for 1m30s, standby: not following": {Standbys: true, UnprotectedSince: now.Add(-90 * time.Second), Followers: []kurabe.Follower{lag(kurabe.FollowerStandby, "shop", -1)}},
		"no standby":     {Standbys: true},
		"of shop: 2.3 s": {Source: "shop", Followers: []kurabe.Follower{lag(kurabe.FollowerReplica, "reads", 2.26)}},
		"reader: 0.1 s":  {Name: "ring-instance-2", Followers: []kurabe.Follower{lag(kurabe.FollowerReader, "ring-instance-2", 0.1)}},
		"ring-instance-2: 0.1 s, ring-instance-3: ?": {Standbys: true, Synced: true, Cluster: true, Followers: []kurabe.Follower{
			lag(kurabe.FollowerReader, "ring-instance-2", 0.1), {Kind: kurabe.FollowerReader, Instance: "ring-instance-3", Unknown: "not heard"}}},
	} {
		if got := ReplicationColumn(f, now); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestBehindWords(t *testing.T) {
	for want, f := range map[string]kurabe.Follower{
		"1.5 s behind":                         {Lag: &kurabe.ReplicaLag{Seconds: 1.5}},
		"does not follow: it writes":           {Lag: &kurabe.ReplicaLag{Seconds: kurabe.ReplicaLagNone, Reason: "it writes"}},
		"lag not known":                        {},
		"lag not known: the host is not heard": {Unknown: "the host is not heard"},
	} {
		if got := behindWords(f); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
