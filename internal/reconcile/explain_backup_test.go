package reconcile

import (
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/store"
)

// TestMoments: only snapshots that can be restored from count, as for the API.
func TestMoments(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 3, 2, 12, minute, 0, 0, time.UTC) }
	mark := func(minute int) kurabe.LogMark {
		return kurabe.LogMark{At: at(minute), Position: kurabe.LogPosition{File: "1", Offset: int64(minute)}}
	}
	log := kurabe.InstanceLog{Runs: []kurabe.LogRun{
		{First: mark(0), Last: mark(10), Ended: "a gap"},
		{First: mark(20), Last: mark(30)},
	}}
	snapshot := func(minute int, change func(*store.Snapshot)) *store.Snapshot {
		s := &store.Snapshot{
			Spec: &kurabe.SnapshotSpec{Kind: kurabe.SnapshotAutomated},
			Status: &kurabe.SnapshotStatus{State: kurabe.SnapshotAvailable, Facts: kurabe.SnapshotFacts{
				TakenAt: at(minute), UsableAt: at(minute + 1), Position: kurabe.LogPosition{File: "1", Offset: int64(minute)},
			}},
		}
		if change != nil {
			change(s)
		}
		return s
	}
	for _, c := range []struct {
		name     string
		list     []*store.Snapshot
		from, to time.Time
	}{
		{"none", nil, time.Time{}, time.Time{}},
		{"one", []*store.Snapshot{snapshot(22, nil)}, at(23), at(30)},
		{"on both sides of a gap", []*store.Snapshot{snapshot(22, nil), snapshot(5, nil)}, at(6), at(30)},
		{"within the gap", []*store.Snapshot{snapshot(15, nil)}, time.Time{}, time.Time{}},
		{"a manual one", []*store.Snapshot{snapshot(22, func(s *store.Snapshot) { s.Spec.Kind = kurabe.SnapshotManual })}, time.Time{}, time.Time{}},
		{"one that goes", []*store.Snapshot{snapshot(22, func(s *store.Snapshot) { s.Spec.Deleting = &kurabe.Deletion{} })}, time.Time{}, time.Time{}},
		{"one in the making", []*store.Snapshot{snapshot(22, func(s *store.Snapshot) { s.Status.State = kurabe.SnapshotCreating })}, time.Time{}, time.Time{}},
		{"one that was never planned", []*store.Snapshot{snapshot(22, func(s *store.Snapshot) { s.Status = nil })}, time.Time{}, time.Time{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if from, to := moments(c.list, log); !from.Equal(c.from) || !to.Equal(c.to) {
				t.Errorf("from %s to %s, want %s to %s", from, to, c.from, c.to)
			}
		})
	}
}
