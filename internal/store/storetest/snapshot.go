package storetest

import (
	"context"
	"errors"
	"testing"

	"kurabe"
	"kurabe/internal/store"
)

// testSnapshots follows one snapshot from its creation to its last record.
func testSnapshots(t *testing.T, kv store.KV, _ Backend) {
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	view := store.NewView(kv)
	go view.Run(ctx) // ends with ctx
	see := func(c *store.Change) {
		t.Helper()
		revision, err := c.Commit(ctx, kv)
		if err == nil {
			err = view.WaitRevision(ctx, revision)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	conflict := func(what string, c *store.Change) {
		t.Helper()
		if _, err := c.Commit(ctx, kv); !errors.Is(err, store.ErrConflict) {
			t.Errorf("%s: %v; want a conflict", what, err)
		}
	}
	const name = "rds:orders-2026-11-21-03-00"
	spec := kurabe.SnapshotSpec{ID: "snap-1", Name: name, Source: kurabe.SnapshotSource{Instance: "db-1"}}
	_, before, err := kv.List(ctx, store.Root)
	if err != nil {
		t.Fatal(err)
	}
	see(store.NewChange().RequireSnapshotsUnwritten(before).CreateSnapshot(spec))
	second := spec
	second.ID = "snap-2"
	conflict("a second one of that name", store.NewChange().CreateSnapshot(second))
	second.Name = "other"
	conflict("one beyond a quota counted before", store.NewChange().RequireSnapshotsUnwritten(before).CreateSnapshot(second))
	see(store.NewChange().PutSnapshotStatus(kurabe.SnapshotStatus{ID: "snap-1", State: kurabe.SnapshotCreating}, 0).
		PutAssignment(kurabe.SnapshotAssignment{Host: "h", Snapshot: "snap-1", Generation: 1, Source: spec.Source}, 0).
		PutReport(kurabe.SnapshotReport{Host: "h", Snapshot: "snap-1", Done: true}))
	s, ok := view.SnapshotByName(name)
	if !ok || s.Status == nil || len(s.Assignments) != 1 || len(s.Reports) != 1 {
		t.Fatalf("snapshot %+v", s)
	}
	spec.Revision++
	see(store.NewChange().PutSnapshot(spec, s.SpecMod))
	conflict("a deletion of what was read before", store.NewChange().DeleteSnapshot(s))
	s, _ = view.Snapshot("snap-1")
	see(store.NewChange().DeleteSnapshot(s))
	see(store.NewChange().DropReport("h", kurabe.SnapshotID("snap-1").Ref()))
	if left, _, err := kv.List(ctx, store.Root); err != nil || len(left) != 0 {
		t.Errorf("left are %v, %v", left, err)
	}
	second.Name = name
	see(store.NewChange().CreateSnapshot(second))
}
