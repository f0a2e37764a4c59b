package reconcile

import (
	"cmp"
	"slices"

	"kurabe"
	"kurabe/internal/store"
)

// Snapshots tells what is known of every snapshot, by name.
func Snapshots(view *store.View) []kurabe.SnapshotKnown {
	list := []kurabe.SnapshotKnown{}
	for _, s := range view.Snapshots() {
		if s.Spec != nil {
			list = append(list, knownSnapshot(s))
		}
	}
	slices.SortFunc(list, func(a, b kurabe.SnapshotKnown) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

func knownSnapshot(s *store.Snapshot) kurabe.SnapshotKnown {
	e := explainSnapshot(s)
	k := kurabe.SnapshotKnown{Name: e.Name, Instance: s.Spec.Source.Name, Cluster: s.Spec.Source.Cluster, Kind: e.Kind, State: e.State}
	if s.Status != nil {
		if v := s.Status.Verified; v != nil && v.OK {
			k.VerifiedAt = v.At
		} else if v != nil {
			k.DamagedAt, k.Problems = v.At, v.Problems
		}
	}
	if e.Facts.Percent == 100 && e.State != kurabe.SnapshotFailed {
		k.Taken, k.Method, k.SizeBytes, k.OccupiedBytes = true, e.Facts.Method, e.Facts.SizeBytes, e.Facts.OccupiedBytes
	}
	return k
}

// Occupied tells what every snapshot that was taken occupies on its host, in bytes by
// name, as far as its host has told. Commands of earlier versions ask for it.
func Occupied(view *store.View) map[string]int64 {
	out := map[string]int64{}
	for _, k := range Snapshots(view) {
		if k.Taken {
			out[k.Name] = k.OccupiedBytes
		}
	}
	return out
}
