package reconcile

import (
	"time"

	"kurabe/internal/plan"
	"kurabe/internal/store"
)

// verification gathers what the schedule of verifications depends on.
func verification(view *store.View, s *store.Snapshot, every time.Duration) plan.Verify {
	v := plan.Verify{Every: every, Newest: newestOf(view, s.Spec.Source.Instance, takenAt(s)).IsZero()}
	for _, other := range view.SnapshotsOf(s.Spec.Source.Instance) {
		if st := other.Status; st != nil && st.Verified != nil && st.Verified.OK && st.Verified.At.After(v.Last) {
			v.Last = st.Verified.At
		}
	}
	return v
}
