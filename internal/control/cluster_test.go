package control

import (
	"slices"
	"testing"

	"kurabe"
	"kurabe/internal/control/placement"
	"kurabe/internal/control/scope/scopetest"
	"kurabe/internal/store"
)

func newTestCluster(name string) NewInstance {
	return NewInstance{Name: name, Engine: "postgres", Class: "db.local.micro", MasterUsername: "boss", MasterPassword: "long-enough-1", AutoMinorUpgrade: true}
}

func mustCluster(t *testing.T, c *Control, name string) Instance {
	t.Helper()
	i, err := c.Clusters().CreateInstance(t.Context(), newTestCluster(name))
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func TestAClusterIsOneSpecOfThreeServers(t *testing.T) {
	c := newTestWorld(t)
	i := mustCluster(t, c, "Shop")
	if s := i.Spec; !s.Cluster || !s.Now.MultiAZ || s.Name != "shop" || i.ResourceID() == string(s.ID) {
		t.Errorf("%+v", s)
	}
	stored, _ := c.View.InstanceByName("cluster:shop")
	class, _ := kurabe.FindClass("db.local.micro")
	if got := placement.ReservedBytes(stored); got != 3*class.MemoryBytes {
		t.Errorf("%d bytes of memory are reserved, want three times %d", got, class.MemoryBytes)
	}
	if list, _ := c.Instances(InstanceFilter{}, "", 100); len(list) != 0 {
		t.Error("a cluster without servers is among the instances", list)
	}
	if list, _ := c.Clusters().Instances(InstanceFilter{}, "", 100); len(list) != 1 {
		t.Error(list)
	}
}

// An instance and a cluster may have one name, as on RDS.
func TestAClusterMayBeCalledLikeAnInstance(t *testing.T) {
	c := newTestWorld(t)
	scopetest.AddInstance(t, c.Scope, scopetest.Spec("shop"))
	mustCluster(t, c, "shop")
	i, err := c.Instance("shop")
	if err != nil || i.Spec.Cluster {
		t.Error(i.Spec, err)
	}
	d, err := c.Clusters().Instance(c.ARN("cluster", "shop"))
	if err != nil || !d.Spec.Cluster {
		t.Error(d.Spec, err)
	}
	for _, name := range []string{"cluster:shop", c.ARN("cluster", "shop")} {
		if _, err := c.Instance(name); err == nil {
			t.Errorf("%s is found among the instances", name)
		}
	}
	_, err = c.Clusters().CreateInstance(t.Context(), newTestCluster("shop"))
	scopetest.WantCode(t, AsCluster(err), kurabe.CodeClusterExists, "DB cluster already exists")
}

// The names of a cluster's servers are kept free, whichever comes first.
func TestNamesOfServersAreKeptFree(t *testing.T) {
	c := newTestWorld(t)
	scopetest.AddInstance(t, c.Scope, scopetest.Spec("shop-instance-7"))
	_, err := c.Clusters().CreateInstance(t.Context(), newTestCluster("shop"))
	scopetest.WantCode(t, err, kurabe.CodeInvalidParameterValue, "shop-instance-7")
	mustCluster(t, c, "wiki")
	for _, name := range []string{"wiki-instance-1", "wiki-instance-12"} {
		_, err := c.CreateInstance(t.Context(), newTestCluster(name))
		scopetest.WantCode(t, err, kurabe.CodeInstanceExists, "servers of DB cluster wiki")
	}
	now := true
	taken := "wiki-instance-2"
	_, err = c.ModifyInstance(t.Context(), "shop-instance-7", InstanceChange{NewName: &taken, ApplyImmediately: now})
	scopetest.WantCode(t, err, kurabe.CodeInstanceExists, "servers of DB cluster wiki")
	for _, name := range []string{"wiki-instance-01", "wiki-instance-x", "wiki-instance"} {
		if err := c.nameFree(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A rename that was decided before there was the cluster does not commit after it.
func TestARenameMeetsANewCluster(t *testing.T) {
	c := newTestWorld(t)
	scopetest.AddInstance(t, c.Scope, scopetest.Spec("single"))
	other := New(c.Scope, c.Config)
	c.KV = &interrupted{KV: c.KV, before: func() { mustCluster(t, other, "wiki") }}
	taken := "wiki-instance-1"
	_, err := c.ModifyInstance(t.Context(), "single", InstanceChange{NewName: &taken, ApplyImmediately: true})
	scopetest.WantCode(t, err, kurabe.CodeInstanceExists, "servers of DB cluster wiki")
}

func TestRenameACluster(t *testing.T) {
	c := newTestWorld(t)
	i := mustCluster(t, c, "shop")
	scopetest.Commit(t, c.Scope, store.NewChange().PutStatus(kurabe.InstanceStatus{ID: i.Spec.ID, SpecRevision: i.Spec.Revision, State: kurabe.StateAvailable, Applied: i.Spec.Now}, 0))
	name := "store"
	if _, err := c.Clusters().ModifyInstance(t.Context(), "shop", InstanceChange{NewName: &name, ApplyImmediately: true}); err != nil {
		t.Fatal(err)
	}
	stored, ok := c.View.InstanceByName("cluster:store")
	if !ok || len(stored.Names) != 1 {
		t.Fatalf("%+v", stored)
	}
	if _, taken := c.View.NameOwner("cluster:shop"); taken {
		t.Error("the old name is not given back")
	}
}

// The world is one host of 8 GiB with three zones.
func TestAClusterThatFitsNowhere(t *testing.T) {
	c := newTestWorld(t)
	n := newTestCluster("shop")
	n.Class = "db.local.large" // 8 GiB
	_, err := c.Clusters().CreateInstance(t.Context(), n)
	scopetest.WantCode(t, err, kurabe.CodeInsufficientCapacity, "3 servers of db.local.large")
	n.Class = "db.local.micro"
	h := scopetest.Host()
	h.Zones = h.Zones[:2]
	scopetest.Commit(t, c.Scope, store.NewChange().PutHost(h))
	_, err = c.Clusters().CreateInstance(t.Context(), n)
	scopetest.WantCode(t, err, kurabe.CodeInsufficientCapacity, "availability zones")
}

// Data is data: a snapshot of either becomes either.
func TestSnapshotsOfClustersAndInstances(t *testing.T) {
	c := newTestWorld(t)
	scopetest.AddInstance(t, c.Scope, scopetest.Spec("single"))
	i := mustCluster(t, c, "shop")
	scopetest.Commit(t, c.Scope, store.NewChange().PutStatus(kurabe.InstanceStatus{ID: i.Spec.ID, SpecRevision: i.Spec.Revision, State: kurabe.StateAvailable, Applied: i.Spec.Now}, 0))
	for _, of := range []struct {
		c    *Control
		name string
	}{{c, "single"}, {c.Clusters(), "shop"}} {
		m, err := of.c.CreateSnapshot(t.Context(), "kept", of.name, nil)
		if err != nil {
			t.Fatal(err)
		}
		done := kurabe.SnapshotStatus{ID: m.Spec.ID, SpecRevision: m.Spec.Revision, State: kurabe.SnapshotAvailable, Host: "h1"}
		scopetest.Commit(t, c.Scope, store.NewChange().PutSnapshotStatus(done, 0))
	}
	_, err := c.Clusters().CreateSnapshot(t.Context(), "kept", "shop", nil)
	scopetest.WantCode(t, AsCluster(err), kurabe.CodeClusterSnapshotExists, "kept")
	for _, of := range []*Control{c, c.Clusters()} {
		if list, _ := of.Snapshots(SnapshotFilter{}, "", 100); len(list) != 1 {
			t.Error(of.Cluster, list)
		}
	}
	if _, err := c.Snapshot("cluster:kept"); err == nil {
		t.Error("the snapshot of the cluster is found among those of instances by its key")
	}
	one, err := c.RestoreSnapshot(t.Context(), c.ARN("cluster-snapshot", "kept"), NewInstance{Name: "one"})
	if err != nil || one.Spec.Cluster || one.Spec.Now.MultiAZ {
		t.Errorf("%+v %v", one.Spec, err)
	}
	three, err := c.Clusters().RestoreSnapshot(t.Context(), c.ARN("snapshot", "kept"), NewInstance{Name: "three"})
	if err != nil || !three.Spec.Cluster || !three.Spec.Now.MultiAZ {
		t.Errorf("%+v %v", three.Spec, err)
	}
	if own, _ := c.Clusters().Snapshot("kept"); three.Spec.Origin.Snapshot == own.Spec.ID {
		t.Error("restored from the cluster snapshot of that name")
	}
}

// Only a cluster's own parameter group holds it, and only under that key is it found.
func TestParameterGroupsOfClusters(t *testing.T) {
	c := newTestWorld(t)
	mustGroup(t, c, "g")
	mustGroup(t, c.Clusters(), "g")
	n, group := newTestCluster("shop"), "g"
	n.ParameterGroup = &group
	if _, err := c.Clusters().CreateInstance(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	scopetest.WantCode(t, c.Clusters().DeleteParameterGroup(t.Context(), "g"), kurabe.CodeInvalidParameterGroup, "still members")
	if err := c.DeleteParameterGroup(t.Context(), "g"); err != nil {
		t.Fatal(err)
	}
	if keys := c.View.ParameterGroups(); len(keys) != 1 || keys[0].Value.Key() != "cluster:g" {
		t.Error(keys)
	}
	if names := c.ParameterGroups(); slices.ContainsFunc(names, func(g kurabe.ParameterGroup) bool { return g.Name == "g" }) {
		t.Error("the cluster's group is among those of instances")
	}
}

// Nothing is known of a subnet group's zones but what its subnets say.
func TestAClusterNeedsASubnetGroupOfThreeZones(t *testing.T) {
	c := newTestWorld(t)
	g := kurabe.SubnetGroup{Name: "two", Description: "d", Subnets: []kurabe.Subnet{{ID: "subnet-a", Zone: "us-east-1a"}, {ID: "subnet-b", Zone: "us-east-1b"}}}
	scopetest.Commit(t, c.Scope, store.NewChange().CreateSubnetGroup(g))
	n, name := newTestCluster("shop"), "two"
	n.SubnetGroup = &name
	_, err := c.Clusters().CreateInstance(t.Context(), n)
	scopetest.WantCode(t, err, kurabe.CodeSubnetGroupAZCoverage, "3 zones")
}
