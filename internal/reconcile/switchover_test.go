package reconcile

import (
	"errors"
	"slices"
	"testing"

	"kurabe"
	"kurabe/internal/plan"
	"kurabe/internal/store"
)

// yieldingSource is a store with a source that yields to one of its two replicas.
func yieldingSource() *store.Change {
	of := func(s *kurabe.InstanceSpec) { s.Source = "db-1" }
	wish := func(s *kurabe.InstanceSpec) { s.Switchover = &kurabe.Switchover{Seq: 1, To: "db-2"} }
	return store.NewChange().CreateInstance(classed("db-1", "db.t3.micro", wish)).CreateInstance(classed("db-2", "db.t3.micro", of)).CreateInstance(classed("db-3", "db.t3.micro", of)).
		PutStatus(kurabe.InstanceStatus{ID: "db-1"}, 0).PutStatus(kurabe.InstanceStatus{ID: "db-2", Source: "db-1"}, 0).PutStatus(kurabe.InstanceStatus{ID: "db-3", Source: "db-1"}, 0).
		PutAssignment(serverAt("h1", "db-1", 1, "127.66.0.1", ""), 0).PutAssignment(serverAt("h1", "db-2", 1, "127.66.0.2", ""), 0).
		PutGroup(kurabe.Group{Instance: "db-1", Epoch: 4, Primary: "db-1", LastNumber: 1, Members: []kurabe.Member{{ID: "db-1", Host: "h1"}}, SwitchoverTo: "db-2"}, 0)
}

func TestWorldOfASwitchover(t *testing.T) {
	v := viewOf(t, yieldingSource())
	f := newFleet(v)
	source, _ := v.Instance("db-1")
	if w := f.world(source, noon); w.SwitchoverTarget == nil || w.SwitchoverTarget.Assignment.Instance != "db-2" || w.Source != nil {
		t.Errorf("of the source: %+v", w.SwitchoverTarget)
	}
	heir, _ := v.Instance("db-2")
	up := f.world(heir, noon).Source
	if up == nil || up.Switch != "db-2" || up.Asked != "db-2" || up.Epoch != 4 || up.Status == nil || len(up.Siblings) != 2 || up.Siblings["db-3"].Source != "db-1" {
		t.Errorf("of the heir: %+v", up)
	}
	if !grouped(&store.Instance{ID: "db-9", Spec: &kurabe.InstanceSpec{}, Status: &kurabe.InstanceStatus{Source: "db-1"}}) {
		t.Error("a former source is planned without comparing that nobody has made it a writer")
	}
}

// Of a takeover and a word that is taken back one can be written, whichever comes first.
func TestTakeOverIsCompared(t *testing.T) {
	for _, first := range []string{"taken over", "taken back"} {
		t.Run(first, func(t *testing.T) {
			kv, v := storeOf(t, yieldingSource())
			source, _ := v.Instance("db-1")
			f := newFleet(v)
			heir, _ := v.Instance("db-2")
			f.world(heir, noon)
			over := store.NewChange()
			changeFollowers(over, f.linked, plan.Result{Followers: []kurabe.InstanceStatus{{ID: "db-1", Source: "db-2"}, {ID: "db-3", Source: "db-2"}}})
			again := source.Group.Clone()
			again.SwitchoverTo = ""
			back := store.NewChange()
			changeGroup(back, source, plan.Result{Group: again})
			order := []*store.Change{over, back}
			if first == "taken back" {
				slices.Reverse(order)
			}
			revision, err := order[0].Commit(t.Context(), kv)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := order[1].Commit(t.Context(), kv); !errors.Is(err, store.ErrConflict) {
				t.Errorf("both are written: %v", err)
			}
			if err := v.WaitRevision(t.Context(), revision); err != nil {
				t.Fatal(err)
			}
			now, _ := v.Instance("db-1")
			if gone := now.Group == nil; gone != (first == "taken over") {
				t.Errorf("the record is %+v", now.Group)
			}
			if first == "taken over" && len(v.Replicas("db-2")) != 2 {
				t.Errorf("%d follow the new source", len(v.Replicas("db-2")))
			}
		})
	}
}
