package reconcile

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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

// What a verification found is known of a snapshot, and what it occupies once it is taken.
func TestSnapshots(t *testing.T) {
	at := time.Unix(5, 0)
	spec := &kurabe.SnapshotSpec{ID: "snap-1", Name: "nightly", Kind: kurabe.SnapshotManual, Source: kurabe.SnapshotSource{Name: "shop"}}
	status := kurabe.SnapshotStatus{State: kurabe.SnapshotAvailable, Facts: kurabe.SnapshotFacts{Method: kurabe.SnapshotCloned, OccupiedBytes: 7, SizeBytes: 9, Percent: 100}}
	half, good, bad := status, status, status
	half.State, half.Facts.Percent = kurabe.SnapshotCreating, 50
	good.Verified = &kurabe.Verification{OK: true, At: at}
	bad.Verified = &kurabe.Verification{At: at, Problems: []string{"x"}}
	base := kurabe.SnapshotKnown{Name: "nightly", Instance: "shop", Kind: kurabe.SnapshotManual, State: kurabe.SnapshotAvailable, Taken: true, Method: kurabe.SnapshotCloned, OccupiedBytes: 7, SizeBytes: 9}
	sound, spoilt := base, base
	sound.VerifiedAt, spoilt.DamagedAt, spoilt.Problems = at, at, []string{"x"}
	for name, c := range map[string]struct {
		status *kurabe.SnapshotStatus
		want   kurabe.SnapshotKnown
	}{
		"not planned": {nil, kurabe.SnapshotKnown{Name: "nightly", Instance: "shop", Kind: kurabe.SnapshotManual, State: kurabe.SnapshotCreating}},
		"half":        {&half, kurabe.SnapshotKnown{Name: "nightly", Instance: "shop", Kind: kurabe.SnapshotManual, State: kurabe.SnapshotCreating}},
		"taken":       {&status, base},
		"verified":    {&good, sound},
		"damaged":     {&bad, spoilt},
	} {
		if diff := cmp.Diff(c.want, knownSnapshot(&store.Snapshot{ID: "snap-1", Spec: spec, Status: c.status})); diff != "" {
			t.Error(name, diff)
		}
	}
}
