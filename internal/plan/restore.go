package plan

import (
	"slices"

	"kurabe"
)

// unrestorable tells of an instance whose data is damaged where it is restored from.
// The host does not try again, so what is left to do is the user's.
func (d *draft) unrestorable(f *kurabe.Failure) {
	what := "the snapshot that it is restored from is damaged"
	if f.Kind == kurabe.FailureLog {
		what = "the log that it is to be restored with is damaged or incomplete"
	}
	why := "The DB instance cannot be restored, and nothing of it is offered: " + what + ". Delete it, and restore from another snapshot or to another moment. " + f.Message
	if d.cannot(kurabe.StateIncompatibleRestore, why) {
		d.event("KURABE-EVENT-0016", why, "failure")
	}
}

// damaged notes what a restore has met in the snapshot: the same that a verification
// looks for, so it is kept as the result of one. A later verification speaks again.
func (d *snapshotDraft) damaged() {
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
