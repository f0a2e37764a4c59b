package reconcile

import (
	"reflect"
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
	v := viewOf(t, store.NewChange().CreateInstance(going).CreateInstance(classed("db-2", "db.t3.micro", nil)).Put(store.Root+"group/db-2", []byte("{")))
	f := newFleet(v)
	for _, id := range []kurabe.InstanceID{"db-1", "db-9"} {
		if up := f.upstream(id); !reflect.DeepEqual(up, &plan.Upstream{Gone: true}) {
			t.Errorf("%s: %+v", id, up)
		}
	}
	if up := f.upstream("db-2"); up != nil {
		t.Errorf("one whose records cannot be read is taken for %+v", up)
	}
}

// What follows a replica goes by that one's own epoch: it has no record of who writes.
func TestSourceThatIsAReplica(t *testing.T) {
	a := serverAt("h1", "db-1", 3, "127.66.0.1", "")
	a.Role = &kurabe.Role{Epoch: 7, Duty: kurabe.DutyFollow, ServesReads: true}
	v := viewOf(t, store.NewChange().CreateInstance(classed("db-1", "db.t3.micro", func(s *kurabe.InstanceSpec) { s.Source = "db-0" })).PutAssignment(a, 0))
	if up := newFleet(v).upstream("db-1"); up == nil || up.Gone || up.Epoch != 7 {
		t.Errorf("%+v", up)
	}
}
