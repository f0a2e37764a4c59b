package reconcile

import (
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/store"
)

func TestExplainSnapshot(t *testing.T) {
	spec := &kurabe.SnapshotSpec{ID: "snap-1", Name: "nightly", CreatedAt: time.Unix(1, 0)}
	copied := *spec
	copied.CopyOf, copied.CopyOfName = "snap-0", "first"
	going := *spec
	going.Deleting = &kurabe.Deletion{}
	status := &kurabe.SnapshotStatus{ID: "snap-1", State: kurabe.SnapshotAvailable, Host: "h", Facts: kurabe.SnapshotFacts{OccupiedBytes: 1, Percent: 100}}
	for _, c := range []struct {
		name     string
		stored   store.Snapshot
		want     kurabe.SnapshotState
		occupied int64
	}{
		{"not planned yet", store.Snapshot{ID: "snap-1", Spec: spec}, kurabe.SnapshotCreating, 0},
		{"a copy that is not planned yet", store.Snapshot{ID: "snap-1", Spec: &copied}, kurabe.SnapshotCopying, 0},
		{"available", store.Snapshot{ID: "snap-1", Spec: spec, Status: status}, kurabe.SnapshotAvailable, 1},
		{"to be deleted", store.Snapshot{ID: "snap-1", Spec: &going, Status: status}, kurabe.SnapshotDeleting, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := explainSnapshot(&c.stored)
			if got.State != c.want || got.Facts.OccupiedBytes != c.occupied || got.Name != "nightly" || got.CopyOfName != c.stored.Spec.CopyOfName {
				t.Errorf("%+v", got)
			}
		})
	}
}
