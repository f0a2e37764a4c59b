package backup

import (
	"fmt"
	"slices"
	"time"

	"kurabe"
	"kurabe/internal/event"
	"kurabe/internal/plan/tell"
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
func (d *draft) verify(r *kurabe.SnapshotReport) {
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
func (d *draft) unverified() bool {
	return d.next.Verify > 0 && (d.status.Verified == nil || d.status.Verified.Seq < d.next.Verify)
}

// verifyDue is the schedule. A bad verification is not repeated, and does not put off
// that of the next snapshot.
func (d *draft) verifyDue() bool {
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
func (d *draft) lookAgain(t time.Time) {
	if d.result.LookAgain.IsZero() || t.Before(d.result.LookAgain) {
		d.result.LookAgain = t
	}
}

// verified tells of a result, on the snapshot and on its instance.
func (d *draft) verified(v *kurabe.Verification) {
	of, in := event.SnapshotVerified, event.BackupVerified
	text := fmt.Sprintf("no damage was found in %s", v.Duration.Round(time.Second))
	if v.OK {
		if !v.Until.IsZero() {
			text += ", and its log was replayed to " + v.Until.UTC().Format(time.RFC3339)
		}
	} else {
		of, in, text = event.SnapshotDamaged, event.BackupDamaged, tell.First(v.Problems)
	}
	if len(v.Notes) > 0 {
		text += "; " + tell.First(v.Notes)
	}
	of = of.With(d.w.Spec.Name, text)
	d.because(of.Text)
	d.tell(of)
	d.tellInstance(in.With(d.w.Spec.Name, text))
}

// damaged notes what a restore has met in the snapshot: the same that a verification
// looks for, so it is kept as the result of one. A later verification speaks again.
func (d *draft) damaged() {
	f, have := d.w.Damage, d.status.Verified
	if f == nil || have != nil && !have.At.Before(f.At) {
		return
	}
	text := []rune(f.Message)
	problem := "a restore met it: " + string(text[:min(len(text), kurabe.VerifyProblemCharsMax)])
	if have != nil && slices.Contains(have.Problems, problem) {
		return // told
	}
	v := &kurabe.Verification{At: f.At, Problems: []string{problem}}
	if have != nil {
		v.Seq = have.Seq
	}
	d.status.Verified = v
	d.verified(v)
}
