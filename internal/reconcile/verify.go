package reconcile

import (
	"time"

	"kurabe"
	"kurabe/internal/plan/backup"
	"kurabe/internal/store"
)

// verification gathers what the schedule of verifications depends on.
func verification(view *store.View, s *store.Snapshot, every time.Duration, now time.Time) backup.Verify {
	v := backup.Verify{Every: every, Newest: history(view, s.Spec.Source.Instance, now).NewestID() == s.ID}
	for _, other := range view.SnapshotsOf(s.Spec.Source.Instance) {
		st := other.Status
		if st == nil || st.Verified == nil || !st.Verified.OK || kurabe.AfterNow(st.Verified.At, now) {
			continue // what was verified before the clock went back would put it off
		}
		if st.Verified.At.After(v.Last) {
			v.Last = st.Verified.At
		}
	}
	return v
}
