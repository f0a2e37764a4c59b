package plan

import (
	"fmt"
	"strings"
	"time"

	"kurabe"
)

// verifyAfter is how old an automated snapshot must be before the schedule has it
// verified: an instance that lives for minutes pays nothing.
const verifyAfter = time.Hour

// Verify is what the schedule of verifications depends on.
type Verify struct {
	// Every is how old the newest good verification of an instance's snapshots may
	// be, 0 for no schedule.
	Every time.Duration
	// Newest says that none of the instance's automated snapshots that are available
	// was taken later than this one.
	Newest bool
	// Last is when the newest good verification of any snapshot of the instance ended.
	Last time.Time
}

// verify has the host verify a snapshot that is there, when somebody wishes it or it
// is time, and tells of the result once.
func (d *snapshotDraft) verify(r *kurabe.SnapshotReport) {
	d.status.Verifying = r.Verifying
	if v := r.Verified; v != nil && (d.status.Verified == nil || v.Seq > d.status.Verified.Seq) {
		d.status.Verified = v
		d.verified(v)
	}
	switch {
	case d.w.Spec.VerifySeq > d.next.Verify:
		d.next.Verify = d.w.Spec.VerifySeq
		d.because("a verification was asked for")
	case d.unverified():
		d.because("it is being verified: " + r.Verifying)
	case d.verifyDue():
		d.next.Verify++
		d.because("its verification is due")
	}
}

// unverified says whether the host was asked for a verification that it has not done.
func (d *snapshotDraft) unverified() bool {
	return d.next.Verify > 0 && (d.status.Verified == nil || d.status.Verified.Seq < d.next.Verify)
}

// verifyDue is the schedule. A bad verification is not repeated, and does not put off
// that of the next snapshot.
func (d *snapshotDraft) verifyDue() bool {
	s, w := d.w.Spec, d.w.Verify
	if s.Kind != kurabe.SnapshotAutomated || s.CopyOf != "" || w.Every <= 0 || !w.Newest || d.status.Facts.TakenAt.IsZero() {
		return false
	}
	if v := d.status.Verified; v != nil && !v.OK {
		return false
	}
	due := d.status.Facts.TakenAt.Add(verifyAfter)
	if again := w.Last.Add(w.Every); !w.Last.IsZero() && again.After(due) {
		due = again
	}
	if due.After(d.w.Now) {
		d.lookAgain(due)
		return false
	}
	return true
}

// lookAgain keeps the earliest of the moments asked for.
func (d *snapshotDraft) lookAgain(t time.Time) {
	if d.result.LookAgain.IsZero() || t.Before(d.result.LookAgain) {
		d.result.LookAgain = t
	}
}

// problemsTold bounds the problems in the text of an event.
const problemsTold = 3

// verified tells of a result, on the snapshot and on its instance.
func (d *snapshotDraft) verified(v *kurabe.Verification) {
	id, text, categories := "KURABE-EVENT-0008", "The backup "+d.w.Spec.Name+" was restored and verified: ", []string{"backup"}
	if v.OK {
		text += fmt.Sprintf("no damage was found in %s", v.Duration.Round(time.Second))
		if !v.Until.IsZero() {
			text += ", and its log was replayed to " + v.Until.UTC().Format(time.RFC3339)
		}
	} else {
		id, categories = "KURABE-EVENT-0009", []string{"failure", "backup"}
		text = "The backup " + d.w.Spec.Name + " cannot be trusted: " + firstOf(v.Problems)
	}
	if len(v.Notes) > 0 {
		text += "; " + firstOf(v.Notes)
	}
	d.because(text)
	d.event(id, text, categories...)
	d.instanceEvent(id, text, categories...)
}

func firstOf(all []string) string {
	told := all[:min(len(all), problemsTold)]
	text := strings.Join(told, "; ")
	if more := len(all) - len(told); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// untrusted says whether a fresh snapshot is to stand in for the newest one, whose
// verification found damage. When that of the one before it did too, another changes
// nothing: the damage is older than both, and the daily ones go on. live is not empty,
// oldest first.
func untrusted(live []Backup) bool {
	newest := len(live) - 1
	return live[newest].Untrusted && (newest == 0 || !live[newest-1].Untrusted)
}
