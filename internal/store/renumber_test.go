package store

import (
	"testing"
	"time"

	"kurabe"
)

func TestRenumber(t *testing.T) {
	kv := NewMemory()
	change := NewChange().
		PutAssignment(kurabe.Assignment{Host: "h1", Instance: "db-1", Generation: 3, Role: &kurabe.Role{Epoch: 2, Source: &kurabe.Source{Epoch: 1}}}, 0).
		PutAssignment(kurabe.SnapshotAssignment{Host: "h1", Snapshot: "snap-1", Generation: 4}, 0).
		PutJoinedHost(kurabe.JoinedHost{ID: "h2"}, 0).PutJoinToken(kurabe.JoinToken{ID: "t1"}, 0)
	mod, err := change.Commit(t.Context(), kv)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewChange().PutPresence(kurabe.Presence{Host: "h2"}, mod).Commit(t.Context(), kv); err != nil {
		t.Fatal(err)
	}
	entries, _, err := kv.List(t.Context(), Root)
	if err != nil {
		t.Fatal(err)
	}
	view := newState()
	for _, e := range append(entries, Entry{Key: PlannerElectionKey, Value: []byte("h1")}) {
		value, keep, err := Renumber(e, time.UnixMilli(100_500))
		if err != nil {
			t.Fatal(err)
		}
		if keep {
			view.put(Entry{Key: e.Key, Value: value, ModRevision: 1})
		}
	}
	a, _ := view.instances.all["db-1"].AssignmentOf("db-1")
	if a.Value.Generation != 100_503 || a.Value.Role.Epoch != 102 || a.Value.Role.Source.Epoch != 101 {
		t.Errorf("assignment %+v, role %+v", a.Value, a.Value.Role)
	}
	if s, _ := view.snapshots.all["snap-1"].Assignment("h1"); s.Value.Generation != 100_504 {
		t.Errorf("snapshot's assignment %+v", s.Value)
	}
	if len(view.joined) != 1 || len(view.presence)+len(view.tokens) != 0 || view.planner != "" {
		t.Errorf("joined %v, presence %v, tokens %v, planner %q", view.joined, view.presence, view.tokens, view.planner)
	}
	if _, _, err := Renumber(Entry{Key: assignmentKey("h1", kurabe.InstanceID("db-1").Ref()), Value: []byte("x")}, time.Now()); err == nil {
		t.Error("an unreadable assignment is restored")
	}
}
