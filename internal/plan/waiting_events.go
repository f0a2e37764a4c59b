package plan

import (
	"maps"
	"regexp"
	"time"

	"kurabe"
)

// What waits for longer than waitTold says why, once, and again when the reason is another
// one. heldMost is for how long locks of clients may keep a snapshot from being taken: they
// are nobody's fault, and a backup that is half a day late is none.
const (
	waitTold = time.Minute
	heldMost = 6 * time.Hour
)

// changing is what differs between two failures of one reason: numbers, names by chance.
var changing = regexp.MustCompile(`[0-9a-f]{16,}|[0-9]+`)

// gist is what makes one reason another than before.
func gist(f *kurabe.Failure) string {
	return f.Step + "\x00" + changing.ReplaceAllString(f.Message, "#")
}

// isTold says of a failure that it has been met often enough, or for long enough.
func isTold(f *kurabe.Failure, now time.Time) bool {
	return f.Attempts >= startTries || !f.Since.IsZero() && !now.Before(f.Since.Add(waitTold))
}

func (d *draft) isTold(f *kurabe.Failure) bool {
	if isTold(f, d.w.Now) {
		return true
	}
	if !f.Since.IsZero() {
		d.lookAgain(f.Since.Add(waitTold))
	}
	return false
}

// tellWaiting tells why servers other than the one that writes do not get on. The writer's own
// failure is the instance's (working).
func (d *draft) tellWaiting() {
	if d.next.Goal != kurabe.GoalRunning {
		d.status.SeenWaits = nil
		return
	}
	seen := map[kurabe.InstanceID]string{}
	for _, m := range d.group.Members {
		r := d.heard(m.ID)
		if m.ID == d.group.Writer || m.Leaving || r == nil || r.Failure == nil {
			continue
		}
		f, before := r.Failure, d.status.SeenWaits[m.ID]
		if !d.isTold(f) {
			continue
		}
		if seen[m.ID] = gist(f); seen[m.ID] != before {
			d.event(eventWaits, "The server in zone "+m.Zone+" waits: step "+f.Step+" does not succeed and is tried again: "+f.Message, "failure")
		}
	}
	if len(seen) == 0 {
		seen = nil
	}
	if !maps.Equal(seen, d.status.SeenWaits) {
		d.status.SeenWaits = seen
	}
}

const eventWaits = "KURABE-EVENT-0062"

// held says of a snapshot that its only hindrance is what clients do, which may end.
func (d *snapshotDraft) held(f *kurabe.Failure) bool {
	return f.Kind == kurabe.FailureLocked && !f.Since.IsZero() && d.w.Now.Before(f.Since.Add(heldMost))
}

// tellWait tells why the snapshot is not taken yet.
func (d *snapshotDraft) tellWait(f *kurabe.Failure) {
	if f.Since.IsZero() {
		return // of an earlier host
	}
	if at := f.Since.Add(waitTold); d.w.Now.Before(at) {
		d.lookAgain(at)
		return
	}
	if d.status.SeenWait == gist(f) {
		return
	}
	d.status.SeenWait = gist(f)
	d.event(eventWaits, "The snapshot waits: step "+f.Step+" does not succeed and is tried again: "+f.Message, "failure")
	d.instanceEvent(eventWaits, "Snapshot "+d.w.Spec.Name+" waits: step "+f.Step+" does not succeed and is tried again: "+f.Message, "backup")
}
