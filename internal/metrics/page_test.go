package metrics

import (
	"strings"
	"testing"
	"time"

	"kurabe"
)

func TestRender(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	lag := func(seconds float64) *kurabe.ReplicaLag { return &kurabe.ReplicaLag{Seconds: seconds} }
	list := []kurabe.Following{
		{Name: "shop", Standbys: true, UnprotectedSince: now.Add(-90 * time.Second), Failovers: 2, Waits: &kurabe.WaitCount{Cancelled: 3, Ended: 1},
			Followers: []kurabe.Follower{{Server: "db-A~2", Kind: kurabe.FollowerStandby, Instance: "shop", Lag: lag(kurabe.ReplicaLagNone)}}},
		{Name: "reads", Source: "shop", Followers: []kurabe.Follower{{Server: "db-B", Kind: kurabe.FollowerReplica, Instance: "reads", Lag: lag(0.25)}}},
		{Name: "ring", Cluster: true, Standbys: true, Synced: true, Followers: []kurabe.Follower{
			{Server: "db-C~2", Kind: kurabe.FollowerReader, Instance: "ring-instance-2", Lag: lag(0)},
			{Server: "db-C~3", Kind: kurabe.FollowerReader, Instance: "ring-instance-3", Unknown: "its host is not heard"},
		}},
		{Name: "new", Standbys: true}, // nobody knows since when
	}
	taken := kurabe.SnapshotKnown{Name: "nightly", Instance: "shop", Kind: kurabe.SnapshotManual, Taken: true, OccupiedBytes: 4096, VerifiedAt: now}
	bad := kurabe.SnapshotKnown{Name: "older", Instance: "ring", Cluster: true, Kind: kurabe.SnapshotManual, Taken: true, DamagedAt: now}
	older := taken
	older.Name, older.VerifiedAt, older.OccupiedBytes = "weekly", now.Add(-time.Hour), 0
	page := Page{Following: list, Snapshots: []kurabe.SnapshotKnown{taken, bad, {Name: "new", Instance: "shop"}, older}}
	const want = `# TYPE kurabe_replica_lag_seconds gauge
# UNIT kurabe_replica_lag_seconds seconds
# HELP kurabe_replica_lag_seconds How old what a follower shows is, as ReplicaLag of RDS; -1 while it does not follow.
kurabe_replica_lag_seconds{instance="shop",server="2",kind="standby"} -1
kurabe_replica_lag_seconds{instance="reads",server="1",kind="replica"} 0.25
kurabe_replica_lag_seconds{instance="ring-instance-2",cluster="ring",server="2",kind="reader"} 0
# TYPE kurabe_standby_in_sync gauge
# HELP kurabe_standby_in_sync 1 while a standby has every commit that was acknowledged, else 0.
kurabe_standby_in_sync{instance="shop"} 0
kurabe_standby_in_sync{cluster="ring"} 1
kurabe_standby_in_sync{instance="new"} 0
# TYPE kurabe_unprotected_seconds gauge
# UNIT kurabe_unprotected_seconds seconds
# HELP kurabe_unprotected_seconds For how long commits have gone on without a standby that has them; 0 while one has.
kurabe_unprotected_seconds{instance="shop"} 90
kurabe_unprotected_seconds{cluster="ring"} 0
# TYPE kurabe_failovers counter
# HELP kurabe_failovers Failovers that were completed since the instance was made.
kurabe_failovers_total{instance="shop"} 2
kurabe_failovers_total{cluster="ring"} 0
kurabe_failovers_total{instance="new"} 0
# TYPE kurabe_ended_waits counter
# HELP kurabe_ended_waits Commits that ended their wait for the standby before it had answered, by what ended it, since the instance was made.
kurabe_ended_waits_total{instance="shop",by="cancel"} 3
kurabe_ended_waits_total{instance="shop",by="session"} 1
# TYPE kurabe_snapshot_occupied_bytes gauge
# UNIT kurabe_snapshot_occupied_bytes bytes
# HELP kurabe_snapshot_occupied_bytes What would be free on the disk if the snapshot were deleted, as of the last look.
kurabe_snapshot_occupied_bytes{instance="shop",snapshot="nightly",kind="manual"} 4096
kurabe_snapshot_occupied_bytes{cluster="ring",snapshot="older",kind="manual"} 0
kurabe_snapshot_occupied_bytes{instance="shop",snapshot="weekly",kind="manual"} 0
# TYPE kurabe_snapshot_damaged gauge
# HELP kurabe_snapshot_damaged 1 for a snapshot whose newest verification or restore met damage, 0 for one that was verified and found sound.
kurabe_snapshot_damaged{instance="shop",snapshot="nightly",kind="manual"} 0
kurabe_snapshot_damaged{cluster="ring",snapshot="older",kind="manual"} 1
kurabe_snapshot_damaged{instance="shop",snapshot="weekly",kind="manual"} 0
# TYPE kurabe_verified_restore_timestamp_seconds gauge
# UNIT kurabe_verified_restore_timestamp_seconds seconds
# HELP kurabe_verified_restore_timestamp_seconds When the newest good verification of a snapshot of the instance ended.
kurabe_verified_restore_timestamp_seconds{instance="shop"} 1700000000
# TYPE kurabe_backup_age_seconds gauge
`
	var b strings.Builder
	if err := Render(&b, page, now); err != nil || !strings.HasPrefix(b.String(), want) {
		t.Errorf("%v\n%s", err, b.String())
	}
}

func TestRenderNotifications(t *testing.T) {
	const want = `# TYPE kurabe_notifications_waiting gauge
# HELP kurabe_notifications_waiting Notifications of the topic that a subscription is not done with.
kurabe_notifications_waiting{topic="alerts"} 3
# TYPE kurabe_notifications_waiting_bytes gauge
# UNIT kurabe_notifications_waiting_bytes bytes
# HELP kurabe_notifications_waiting_bytes What these take in the state store.
kurabe_notifications_waiting_bytes{topic="alerts"} 900
# TYPE kurabe_notifications_given_up counter
# HELP kurabe_notifications_given_up Notifications that were not delivered to the topic's subscriptions.
kurabe_notifications_given_up_total{topic="alerts"} 1
# TYPE kurabe_deliveries counter
# HELP kurabe_deliveries Notifications of this server since its start: attempts that delivered one, attempts that failed, and events and alarms for which the queue had no room.
kurabe_deliveries_total{result="delivered"} 7
kurabe_deliveries_total{result="failed"} 0
kurabe_deliveries_total{result="unqueued"} 0
`
	var b strings.Builder
	page := Page{Topics: []Topic{{Name: "alerts", Waiting: 3, Bytes: 900, GivenUp: 1}}, Delivered: 7}
	if err := Render(&b, page, time.Unix(1, 0)); err != nil || !strings.Contains(b.String(), want) {
		t.Errorf("%v\n%s", err, b.String())
	}
}

func TestLabels(t *testing.T) {
	if got := (labels{"a", "x\"y\\z\n", "b", ""}).String(); got != `a="x\"y\\z\n",b=""` {
		t.Error(got)
	}
}
