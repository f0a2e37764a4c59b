package reconcile

import (
	"slices"
	"testing"

	"kurabe"
	"kurabe/internal/plan"
	"kurabe/internal/store"
)

func TestWorldOfAReplica(t *testing.T) {
	v := viewOf(t, groupOfTwo().CreateInstance(classed("db-3", "db.t3.micro", func(s *kurabe.InstanceSpec) { s.Source = "db-1" })))
	source, _ := v.Instance("db-1")
	replica, _ := v.Instance("db-3")
	f := newFleet(v)
	if w := f.world(source, noon); !slices.Equal(w.Replicas, []kurabe.InstanceID{"db-3"}) || w.Source != nil {
		t.Errorf("of the source: replicas %v, source %+v", w.Replicas, w.Source)
	}
	w := f.world(replica, noon)
	if up := w.Source; up == nil || up.Gone || up.Epoch != 2 || up.Assignment.Instance != "db-1~2" || up.Report == nil || up.Report.PID != 2 || w.Replicas != nil {
		t.Errorf("of the replica: %+v", up)
	}
}

func TestSourceThatIsNotThere(t *testing.T) {
	going := classed("db-1", "db.t3.micro", func(s *kurabe.InstanceSpec) { s.Deleting = &kurabe.Deletion{} })
	v := viewOf(t, store.NewChange().CreateInstance(going))
	f := newFleet(v)
	for _, id := range []kurabe.InstanceID{"db-1", "db-9"} {
		if up := f.upstream(id); up == nil || *up != (plan.Upstream{Gone: true}) {
			t.Errorf("%s: %+v", id, up)
		}
	}
}
