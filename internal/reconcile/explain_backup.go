package reconcile

import (
	"time"

	"kurabe"
	"kurabe/internal/plan"
	"kurabe/internal/store"
)

// BackupExplanation is what is known of the automated backups of one instance.
type BackupExplanation struct {
	At            time.Time `json:"at"` // of this look
	RetentionDays int       `json:"retentionDays"`
	Window        string    `json:"window"` // UTC
	// Earliest and Latest are the range of moments that can be restored, without its
	// gaps; zero when there is none.
	Earliest time.Time `json:"earliest,omitzero"`
	Latest   time.Time `json:"latest,omitzero"`
	// Log is what the host keeps of the log, nil while it has told of none.
	Log *kurabe.InstanceLog `json:"log,omitempty"`
	// DueAt is when the next automated snapshot is made, zero while it waits for what no
	// clock tells; DueWhy is the reason for the moment or the wait.
	DueAt  time.Time `json:"dueAt,omitzero"`
	DueWhy string    `json:"dueWhy,omitempty"`
}

func explainBackups(view *store.View, w plan.World) BackupExplanation {
	e := BackupExplanation{At: w.Now, Window: w.Spec.BackupWindow}
	if w.Status != nil {
		e.RetentionDays = w.Status.Applied.RetentionDays
	}
	if log, kept := view.LogOf(w.Spec.ID); kept {
		e.Log = &log
		e.Earliest, e.Latest = moments(view.SnapshotsOf(w.Spec.ID), log)
	}
	e.DueAt, e.DueWhy = plan.BackupDue(w)
	return e
}

// moments is what automated snapshots and log of an instance reach together.
func moments(list []*store.Snapshot, log kurabe.InstanceLog) (earliest, latest time.Time) {
	var facts []kurabe.SnapshotFacts
	for _, s := range list {
		if s.Spec != nil && s.Spec.Kind == kurabe.SnapshotAutomated && explainSnapshot(s).State == kurabe.SnapshotAvailable {
			facts = append(facts, s.Status.Placed())
		}
	}
	return log.Window(facts)
}
