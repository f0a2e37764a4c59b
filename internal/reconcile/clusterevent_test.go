package reconcile

import (
	"strings"
	"testing"

	"kurabe"
	"kurabe/internal/plan"
	"kurabe/internal/store"
)

// What the planner says of an instance is told of the cluster, under the source types that
// users of clusters ask for.
func TestEventsOfAClusterAreTold(t *testing.T) {
	for _, c := range []struct {
		cluster         bool
		source, message string
	}{{false, `"db-instance"`, "Multi-AZ instance failover started"}, {true, `"db-cluster"`, "DB cluster failover started"}} {
		kv := store.NewMemory()
		spec := &kurabe.InstanceSpec{ID: "db-ORDERS", Name: "orders", Cluster: c.cluster}
		events := []kurabe.Event{{SourceType: "db-instance", Source: "orders", Message: "Multi-AZ instance failover started"}}
		change := (&Loop{}).change(&store.Instance{ID: spec.ID, Spec: spec}, plan.World{Spec: spec}, plan.Result{Events: events})
		if _, err := change.Commit(t.Context(), kv); err != nil {
			t.Fatal(err)
		}
		written, _, err := kv.List(t.Context(), store.Root)
		if err != nil || len(written) != 1 {
			t.Fatal(written, err)
		}
		if got := string(written[0].Value); !strings.Contains(got, c.source) || !strings.Contains(got, c.message) {
			t.Errorf("cluster %v: %s", c.cluster, got)
		}
	}
	kv := store.NewMemory()
	spec := &kurabe.SnapshotSpec{ID: "snap-1", Name: "kept", Source: kurabe.SnapshotSource{Cluster: true}}
	events := []kurabe.Event{{SourceType: "db-snapshot", Source: "kept", Message: "Manual snapshot created"}}
	if _, err := snapshotChange(&store.Snapshot{ID: spec.ID, Spec: spec}, plan.SnapshotResult{Events: events}).Commit(t.Context(), kv); err != nil {
		t.Fatal(err)
	}
	if written, _, err := kv.List(t.Context(), store.Root); err != nil || len(written) != 1 || !strings.Contains(string(written[0].Value), `"db-cluster-snapshot"`) {
		t.Error(written, err)
	}
	if e := told(kurabe.Event{SourceType: "db-snapshot", Message: "DB snapshot deleted"}, true); e.SourceType != "db-cluster-snapshot" || e.Message != "DB cluster snapshot deleted" {
		t.Errorf("snapshot: %+v", e)
	}
}

// A cluster has the values of the cluster parameter group that it names.
func TestWorldOfAClusterHasItsParameterGroup(t *testing.T) {
	named := func(cluster bool) func(*kurabe.InstanceSpec) {
		return func(s *kurabe.InstanceSpec) { s.Cluster, s.ParameterGroup = cluster, "g" }
	}
	v := viewOf(t, store.NewChange().
		CreateParameterGroup(kurabe.ParameterGroup{Name: "g", Description: "of instances"}).
		CreateParameterGroup(kurabe.ParameterGroup{Name: "g", Description: "of clusters", Cluster: true}).
		CreateInstance(classed("db-1", "db.t3.micro", named(false))).CreateInstance(classed("db-2", "db.t3.micro", named(true))))
	for id, want := range map[kurabe.InstanceID]string{"db-1": "of instances", "db-2": "of clusters"} {
		i, _ := v.Instance(id)
		if g := newFleet(v).world(i, noon).Parameters; g == nil || g.Description != want {
			t.Errorf("%s: %+v, want the one %s", id, g, want)
		}
	}
}
