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
	if e := told(kurabe.Event{SourceType: "db-snapshot", Message: "DB snapshot deleted"}, true); e.SourceType != "db-cluster-snapshot" || e.Message != "DB cluster snapshot deleted" {
		t.Errorf("snapshot: %+v", e)
	}
}
