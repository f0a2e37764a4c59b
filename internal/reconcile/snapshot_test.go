package reconcile

import (
	"context"
	"slices"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/plan"
	"kurabe/internal/store"
)

// viewOf is a view of what one change wrote.
func viewOf(t *testing.T, change *store.Change) *store.View {
	t.Helper()
	_, view := storeOf(t, change)
	return view
}

// storeOf is a store of what one change wrote, and a view that follows it.
func storeOf(t *testing.T, change *store.Change) (store.KV, *store.View) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	kv := store.NewMemory()
	revision, err := change.Commit(ctx, kv)
	if err != nil {
		t.Fatal(err)
	}
	view := store.NewView(kv)
	go view.Run(ctx) // ends with ctx
	if err := view.WaitRevision(ctx, revision); err != nil {
		t.Fatal(err)
	}
	return kv, view
}

func snapshotOf(id kurabe.SnapshotID, instance kurabe.InstanceID) kurabe.SnapshotSpec {
	return kurabe.SnapshotSpec{ID: id, Name: "name-" + string(id), Source: kurabe.SnapshotSource{Instance: instance}}
}

func TestSnapshotWorld(t *testing.T) {
	copied := snapshotOf("snap-copy", "db-1")
	copied.CopyOf = "snap-1"
	stale := snapshotOf("snap-done", "db-1")
	stale.CopyOf = "snap-1"
	from := &kurabe.Origin{Snapshot: "snap-1"}
	view := viewOf(t, store.NewChange().
		CreateSnapshot(snapshotOf("snap-1", "db-1")).CreateSnapshot(copied).CreateSnapshot(stale).
		PutSnapshotStatus(kurabe.SnapshotStatus{ID: "snap-1", State: kurabe.SnapshotAvailable}, 0).
		PutSnapshotStatus(kurabe.SnapshotStatus{ID: "snap-copy", State: kurabe.SnapshotCopying}, 0).
		PutSnapshotStatus(kurabe.SnapshotStatus{ID: "snap-done", State: kurabe.SnapshotAvailable}, 0).
		PutAssignment(kurabe.SnapshotAssignment{Host: "h", Snapshot: "snap-1", Generation: 4}, 0).
		PutReport(kurabe.SnapshotReport{Host: "other", Snapshot: "snap-1", Generation: 9}).
		PutReport(kurabe.SnapshotReport{Host: "h", Snapshot: "snap-1", Generation: 4}).
		PutAssignment(kurabe.Assignment{Host: "h", Instance: "db-1", Name: "orders"}, 0).
		PutAssignment(kurabe.Assignment{Host: "h", Instance: "db-2", Name: "restoring", Origin: from}, 0).
		PutAssignment(kurabe.Assignment{Host: "h", Instance: "db-3", Name: "restored", Origin: from}, 0).
		CreateInstance(kurabe.InstanceSpec{ID: "db-4", Name: "asked-for", Origin: from}).
		CreateInstance(kurabe.InstanceSpec{ID: "db-5", Name: "given-up", Origin: from, Deleting: &kurabe.Deletion{}}).
		PutStatus(kurabe.InstanceStatus{ID: "db-2"}, 0).
		PutStatus(kurabe.InstanceStatus{ID: "db-3", AvailableAt: time.Unix(1, 0)}, 0))
	s, _ := view.Snapshot("snap-1")
	w := snapshotWorld(view, s, time.Unix(9, 0))
	if w.Spec.ID != "snap-1" || w.Status == nil || w.Assignment == nil || w.Report == nil || w.Report.Generation != 4 || w.From != nil {
		t.Errorf("world %+v", w)
	}
	if w.Instance == nil || w.Instance.Name != "orders" {
		t.Errorf("instance %+v", w.Instance)
	}
	if want := []string{"the restore of DB instance restoring", "the restore of DB instance asked-for", "its copy name-snap-copy"}; !slices.Equal(w.Readers, want) {
		t.Errorf("readers %q; want %q", w.Readers, want)
	}
	s, _ = view.Snapshot("snap-copy")
	if w := snapshotWorld(view, s, time.Unix(9, 0)); w.From == nil || w.From.ID != "snap-1" || len(w.Readers) > 0 || w.Report != nil {
		t.Errorf("world of the copy %+v", w)
	}
}

func TestInstancesHearOfTheirSnapshots(t *testing.T) {
	copied := snapshotOf("snap-2", "db-1")
	copied.CopyOf = "snap-1"
	deleted := snapshotOf("snap-2", "db-1")
	deleted.Deleting = &kurabe.Deletion{}
	for _, c := range []struct {
		name  string
		spec  kurabe.SnapshotSpec
		state kurabe.SnapshotState
		want  bool
	}{
		{"asked for", snapshotOf("snap-2", "db-1"), "", true},
		{"being taken", snapshotOf("snap-2", "db-1"), kurabe.SnapshotCreating, true},
		{"there", snapshotOf("snap-2", "db-1"), kurabe.SnapshotAvailable, false},
		{"deleted before it was planned", deleted, "", false},
		{"of another", snapshotOf("snap-2", "db-2"), kurabe.SnapshotCreating, false},
		{"copying", copied, kurabe.SnapshotCopying, false},
		{"a copy asked for", copied, "", false},
	} {
		spec := kurabe.InstanceSpec{ID: "db-1", Name: "orders", Deleting: &kurabe.Deletion{FinalSnapshot: "snap-2"}}
		change := store.NewChange().CreateInstance(spec).CreateSnapshot(c.spec)
		if c.state != "" {
			change.PutSnapshotStatus(kurabe.SnapshotStatus{ID: "snap-2", State: c.state}, 0)
		}
		view := viewOf(t, change)
		i, _ := view.Instance("db-1")
		var w plan.World
		newFleet(view).addSnapshots(i, &w)
		if w.BackingUp != c.want {
			t.Errorf("%s: backing up %v; want %v", c.name, w.BackingUp, c.want)
		}
		if (w.Final != nil) != (c.state != "") || w.Final != nil && w.Final.State != c.state {
			t.Errorf("%s: final snapshot %+v", c.name, w.Final)
		}
	}
}
