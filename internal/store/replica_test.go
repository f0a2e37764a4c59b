package store

import (
	"maps"
	"slices"
	"testing"

	"kurabe"
)

// The plan of a source depends on its replicas, and theirs on it: whichever changes, both
// are to be looked at.
func TestReplicasAndSource(t *testing.T) {
	kv := NewMemory()
	v := mustView(t, kv)
	replica := spec("db-2", "r")
	replica.Source = "db-1"
	mustSee(t, v, mustCommit(t, kv, NewChange().CreateInstance(spec("db-1", "s"))))
	mustSee(t, v, mustCommit(t, kv, NewChange().CreateInstance(replica)))
	mustSee(t, v, mustCommit(t, kv, NewChange().CreateInstance(spec("db-3", "other"))))
	replicas := func() (ids []kurabe.InstanceID) {
		for _, i := range v.Replicas("db-1") {
			ids = append(ids, i.ID)
		}
		return ids
	}
	both := []kurabe.InstanceID{"db-1", "db-2"}
	dirty := func(what string, change *Change) {
		t.Helper()
		v.TakeDirty()
		mustSee(t, v, mustCommit(t, kv, change))
		if got := slices.Sorted(maps.Keys(v.TakeDirty().Instances)); !slices.Equal(got, both) {
			t.Errorf("%s: dirty %v, want %v", what, got, both)
		}
	}
	if got := replicas(); !slices.Equal(got, both[1:]) {
		t.Fatalf("replicas %v", got)
	}
	dirty("the source", NewChange().PutReport(kurabe.InstanceReport{Host: "h1", Instance: "db-1", Running: true}))
	dirty("a replica", NewChange().PutStatus(kurabe.InstanceStatus{ID: "db-2", Source: "db-1"}, 0))
	i, _ := v.Instance("db-2")
	dirty("a promotion", NewChange().PutStatus(kurabe.InstanceStatus{ID: "db-2"}, i.StatusMod))
	if got := replicas(); len(got) > 0 {
		t.Errorf("replicas %v after the promotion", got)
	}
	i, _ = v.Instance("db-2")
	mustSee(t, v, mustCommit(t, kv, NewChange().PutStatus(kurabe.InstanceStatus{ID: "db-2", Source: "db-1"}, i.StatusMod)))
	going := *i.Spec
	going.Deleting = &kurabe.Deletion{}
	dirty("a deletion", NewChange().PutInstance(going, i.SpecMod))
	if got := replicas(); len(got) > 0 {
		t.Errorf("replicas %v while it is deleted", got)
	}
}
