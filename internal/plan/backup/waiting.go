package backup

import (
	"time"

	"kurabe"
	"kurabe/internal/event"
	"kurabe/internal/plan/tell"
)

// heldMost is for how long locks of clients may keep a snapshot from being taken: they are
// nobody's fault, and a backup that is half a day late is none.
const heldMost = 6 * time.Hour

// held says of a snapshot that its only hindrance is what clients do, which may end.
func (d *draft) held(f *kurabe.Failure) bool {
	return f.Kind == kurabe.FailureLocked && !f.Since.IsZero() && d.w.Now.Before(f.Since.Add(heldMost))
}

// tellWait tells why the snapshot is not taken yet.
func (d *draft) tellWait(f *kurabe.Failure) {
	if f.Since.IsZero() {
		return // of an earlier host
	}
	if at := f.Since.Add(tell.WaitAfter); d.w.Now.Before(at) {
		d.lookAgain(at)
		return
	}
	if d.status.SeenWait == tell.Gist(f) {
		return
	}
	d.status.SeenWait = tell.Gist(f)
	d.tell(event.SnapshotWaits.With(f.Step, f.Message))
	d.tellInstance(event.BackupWaits.With(d.w.Spec.Name, f.Step, f.Message))
}
