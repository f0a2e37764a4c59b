package reconcile

import (
	"kurabe"
	"kurabe/internal/store"
)

// damage is why the newest restore that was given up was: what it has met in the
// snapshot. The log after it does not count.
func damage(view *store.View, id kurabe.SnapshotID) *kurabe.Failure {
	var newest *kurabe.Failure
	for _, i := range view.RestoredFrom(id) {
		for _, r := range i.Reports {
			f := r.Value.Failure
			if f.Final() && f.Kind == kurabe.FailureSnapshot && (newest == nil || f.At.After(newest.At)) {
				newest = f
			}
		}
	}
	return newest
}
