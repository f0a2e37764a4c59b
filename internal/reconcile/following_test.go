package reconcile

import (
	"reflect"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/store"
)

// What follows is told by the record of who writes: of a pair the other server, of a cluster
// the readers by the names that users know, of a read replica itself.
func TestFollowing(t *testing.T) {
	status := func(id kurabe.InstanceID, change func(*kurabe.InstanceStatus)) kurabe.InstanceStatus {
		s := kurabe.InstanceStatus{ID: id, Host: "h3"}
		change(&s)
		return s
	}
	cluster := kurabe.Group{Instance: "db-4", Epoch: 1, Primary: "db-4", LastNumber: 4, SyncSet: []kurabe.InstanceID{"db-4~2", "db-4~3"}, Members: []kurabe.Member{
		{ID: "db-4", Host: "h1"}, {ID: "db-4~2", Host: "h2"}, {ID: "db-4~3", Host: "h3"}, {ID: "db-4~4", Host: "h4", Leaving: true},
	}}
	pair := twoServers()
	pair.UnprotectedSince = noon
	change := store.NewChange().CreateInstance(classed("db-1", "db.t3.micro", nil)).PutGroup(pair, 0).
		CreateInstance(classed("db-2", "db.t3.micro", nil)).
		CreateInstance(classed("db-3", "db.t3.micro", func(s *kurabe.InstanceSpec) { s.Source = "db-1" })).
		CreateInstance(classed("db-4", "db.t3.micro", func(s *kurabe.InstanceSpec) { s.Cluster = true })).PutGroup(cluster, 0).
		CreateInstance(classed("db-5", "db.t3.micro", func(s *kurabe.InstanceSpec) { s.Now.MultiAZ = true })). // not planned yet
		PutStatus(status("db-1", func(s *kurabe.InstanceStatus) { s.Applied.MultiAZ, s.Failovers, s.Waits.Cancelled = true, 7, 2 }), 0).
		PutStatus(status("db-2", func(*kurabe.InstanceStatus) {}), 0).
		PutStatus(status("db-3", func(s *kurabe.InstanceStatus) { s.Source = "db-1" }), 0).
		PutStatus(status("db-4", func(s *kurabe.InstanceStatus) { s.Waits.Uncounted = true }), 0)
	want := []kurabe.Following{
		{Name: "name-db-4", Cluster: true, Standbys: true, Synced: true, Followers: []kurabe.Follower{
			{Server: "db-4~2", Host: "h2", Kind: kurabe.FollowerReader, Instance: "name-db-4-instance-2"},
			{Server: "db-4~3", Host: "h3", Kind: kurabe.FollowerReader, Instance: "name-db-4-instance-3"},
		}},
		{Name: "name-db-1", Standbys: true, UnprotectedSince: noon, Failovers: 7, Waits: &kurabe.WaitCount{Cancelled: 2}, Followers: []kurabe.Follower{{Server: "db-1", Host: "h1", Kind: kurabe.FollowerStandby, Instance: "name-db-1"}}},
		{Name: "name-db-3", Source: "name-db-1", Followers: []kurabe.Follower{{Server: "db-3", Host: "h3", Kind: kurabe.FollowerReplica, Instance: "name-db-3"}}},
	}
	if got := Following(viewOf(t, change)); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	for _, c := range []struct {
		of    kurabe.Following
		alone time.Duration
		known bool
	}{
		{want[0], 0, true}, {want[1], time.Minute, true}, {want[2], 0, false}, {kurabe.Following{Standbys: true}, 0, false},
	} {
		if alone, known := c.of.Unprotected(noon.Add(time.Minute)); alone != c.alone || known != c.known {
			t.Errorf("%s: alone for %v, %v", c.of.Name, alone, known)
		}
	}
}
