package reconcile

import (
	"fmt"
	"strings"
	"testing"

	"kurabe"
	"kurabe/internal/event"
	"kurabe/internal/plan"
	"kurabe/internal/plan/backup"
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
	if _, err := snapshotChange(&store.Snapshot{ID: spec.ID, Spec: spec}, backup.Result{Events: events}).Commit(t.Context(), kv); err != nil {
		t.Fatal(err)
	}
	if written, _, err := kv.List(t.Context(), store.Root); err != nil || len(written) != 1 || !strings.Contains(string(written[0].Value), `"db-cluster-snapshot"`) {
		t.Error(written, err)
	}
}

// Where RDS has an event of clusters for what is told of an instance or its snapshot, that is
// told, with its category and what was added; of what has none, the words are changed.
func TestEventsOfAClusterAreRDSs(t *testing.T) {
	for _, c := range []struct {
		of   event.Kind
		want string
	}{
		{event.Created, "db-cluster RDS-EVENT-0170 [creation] DB cluster created"},
		{event.Deleted, "db-cluster RDS-EVENT-0171 [deletion] DB cluster deleted"},
		{event.NewPassword, "db-cluster RDS-EVENT-0016 [configuration change] Reset master credentials"},
		{event.Patched.And(": engine version 15.18"), "db-cluster RDS-EVENT-0173 [maintenance] Database cluster engine version has been upgraded: engine version 15.18"},
		{event.CannotBeCreated.And(". The DB instance needs room"), "db-cluster RDS-EVENT-0355 [failure] The DB cluster can't be created because of insufficient resource limits. The DB cluster needs room"},
		{event.ManualBegun, "db-cluster-snapshot RDS-EVENT-0074 [backup] Creating manual cluster snapshot"},
		{event.ManualDone, "db-cluster-snapshot RDS-EVENT-0075 [backup] Manual cluster snapshot created"},
		{event.AutomatedBegun, "db-cluster-snapshot RDS-EVENT-0168 [backup] Creating automated cluster snapshot"},
		{event.AutomatedDone, "db-cluster-snapshot RDS-EVENT-0169 [backup] Automated cluster snapshot created"},
		{event.ClusterFailoverDone.With("shop-instance-2"), "db-cluster RDS-EVENT-0071 [failover] Completed failover to DB instance: shop-instance-2"},
		{event.Restarted, "db-cluster RDS-EVENT-0006 [availability] DB cluster restarted"},
		{event.SnapshotDeleted, "db-cluster-snapshot RDS-EVENT-0041 [deletion] Deleted user snapshot"},
		{event.ParameterUpdated.With("a", "b", "immediate"), "db-parameter-group RDS-EVENT-0037 [configuration change] Updated parameter a to b with apply method immediate"},
	} {
		show := func(e kurabe.Event) string {
			return fmt.Sprint(e.SourceType, " ", e.ID, " ", e.Categories, " ", e.Message)
		}
		e := c.of.Told(noon, "shop", "id")
		if got := told(e, true); show(got) != c.want || got.Source != "shop" || got.SourceID != "id" || !got.At.Equal(noon) {
			t.Errorf("%+v, want %q", got, c.want)
		}
		if got := told(e, false); show(got) != show(e) {
			t.Errorf("of an instance: %q, want %q", show(got), show(e))
		}
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
