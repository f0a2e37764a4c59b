package reconcile

import (
	"kurabe"
	"kurabe/internal/store"
)

// Occupied tells what every snapshot that was taken occupies on its host, in bytes by
// name, as far as its host has told.
func Occupied(view *store.View) map[string]int64 {
	out := map[string]int64{}
	for _, s := range view.Snapshots() {
		if e := explainSnapshot(s); e.Facts.Percent == 100 && e.State != kurabe.SnapshotFailed {
			out[e.Name] = e.Facts.OccupiedBytes
		}
	}
	return out
}
