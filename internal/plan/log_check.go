package plan

import (
	"maps"
	"time"

	"kurabe"
)

// logCheck has all of the stored log read once a day, and when a part of it was lost: that a
// piece is gone is seen within minutes, that its bytes are others only when they are read.
var logCheck = taskKind{
	kind: kurabe.KindLogCheck, every: 24 * time.Hour,
	wanted: func(d *draft) bool { return d.status.Applied.KeepsLog() && !d.follows() },
	tell:   tellLogCheck,
}

// checkLogNow makes the check due, which tells what cannot be restored any more.
func (d *draft) checkLogNow() {
	if s, known := d.status.Tasks[kurabe.KindLogCheck]; known {
		s.At = time.Time{}
		d.status.Tasks = maps.Clone(d.status.Tasks)
		d.status.Tasks[kurabe.KindLogCheck] = s
	}
}

// tellLogCheck tells of damage, with the time that cannot be restored any more: from the last
// mark before it to the next snapshot.
func tellLogCheck(d *draft, r kurabe.TaskResult) {
	var lost []string
	for _, p := range r.Problems {
		until := "the next automated snapshot"
		var next time.Time
		for _, b := range d.w.Backups {
			if b.State == kurabe.SnapshotAvailable && b.UsableAt.After(p.From) && (next.IsZero() || b.UsableAt.Before(next)) {
				next = b.UsableAt
				until = next.UTC().Format(time.RFC3339)
			}
		}
		lost = append(lost, p.Text+", and no moment after "+p.From.UTC().Format(time.RFC3339)+" and before "+until+" can be restored")
	}
	if len(lost) > 0 {
		d.event("KURABE-EVENT-0071", "The stored log of the DB instance is damaged: "+firstOf(lost), "failure", "backup")
	}
}
