package reconcile

import (
	"cmp"
	"slices"
	"time"

	"kurabe"
	"kurabe/internal/store"
)

// SnapshotExplanation is what is known of one snapshot of an instance, without the
// source's verifier.
type SnapshotExplanation struct {
	ID         kurabe.SnapshotID    `json:"id"`
	Name       string               `json:"name"`
	Kind       kurabe.SnapshotKind  `json:"kind"`
	CreatedAt  time.Time            `json:"createdAt"`
	CopyOfName string               `json:"copyOfName,omitempty"`
	State      kurabe.SnapshotState `json:"state"`
	Reason     string               `json:"reason,omitempty"`
	// Facts are the host's newest: while it works, a report is ahead of the status.
	Facts   kurabe.SnapshotFacts `json:"facts"`
	Failure *kurabe.Failure      `json:"failure,omitempty"`
	// Damage is what its newest verification, or a restore since, has found.
	Damage []string `json:"damage,omitempty"`
	// Notes are what its newest verification did not look at, and why.
	Notes []string `json:"notes,omitempty"`
	// VerifiedAt is when its newest verification ended, if that found no damage.
	VerifiedAt time.Time `json:"verifiedAt,omitzero"`
}

// explainSnapshots lists the snapshots of an instance, oldest first.
func explainSnapshots(view *store.View, id kurabe.InstanceID) []SnapshotExplanation {
	list := []SnapshotExplanation{}
	for _, s := range view.SnapshotsOf(id) {
		if s.Spec != nil {
			list = append(list, explainSnapshot(s))
		}
	}
	slices.SortStableFunc(list, func(a, b SnapshotExplanation) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Name, b.Name))
	})
	return list
}

func explainSnapshot(s *store.Snapshot) SnapshotExplanation {
	e := SnapshotExplanation{
		ID: s.ID, Name: s.Spec.Name, Kind: s.Spec.Kind, CreatedAt: s.Spec.CreatedAt, CopyOfName: s.Spec.CopyOfName,
		State: kurabe.SnapshotCreating,
	}
	if s.Spec.CopyOf != "" {
		e.State = kurabe.SnapshotCopying
	}
	if st := s.Status; st != nil {
		e.State, e.Reason, e.Facts = st.State, st.Reason, st.Facts
		if st.Verified != nil {
			e.Damage, e.Notes = st.Verified.Problems, st.Verified.Notes
			e.Damage = st.Verified.Problems
			if st.Verified.OK {
				e.VerifiedAt = st.Verified.At
			}
		}
		if r, ok := s.Report(st.Host); ok {
			e.Failure = r.Failure
			if !r.Absent {
				e.Facts = r.Facts
				e.Facts.StandbySkipped = cmp.Or(r.Facts.StandbySkipped, st.StandbySkipped)
			}
		}
	}
	if s.Spec.Deleting != nil {
		e.State = kurabe.SnapshotDeleting
	}
	return e
}
